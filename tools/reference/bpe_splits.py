#!/usr/bin/env python3
"""Small byte-level vocabularies under each pre-tokenizer of src/text/tokens/bpe_split.h, by Hugging Face's tokenizers, and
texts with the ids that the library gives them.

Written are bpe_NAME.json, tokenizer.json as the library stores it, and bpe_texts.json. Names of special tokens stay text
(encode_special_tokens), and nothing is added around a text.

  python3 tools/reference/bpe_splits.py --out tests/data/text

The vocabulary of a GGUF file, whose pre-tokenizer must be smollm, is tried with --gguf: the ids of a text's lines by the
library go to --out, one line each, and are compared with those of transformers' AutoTokenizer.

  python3 tools/reference/bpe_splits.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf --lines prose.txt --out ids.txt
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# Sentences to train on, written for this file.
TRAINING = """\
The ferry leaves at seven, and the harbour is still asleep when its lamps go on one after another.
She'll have to ask whether they've seen it; I'm sure he'd say that you're wrong, and that it's late.
There isn't a better way to learn the names of the stars than to stay outside and count them.
Der Zug nach München hält in jedem Dorf, weil die Strecke über die Hügel eingleisig ist.
Größere Schiffe müssen draußen warten, bis die Brücke für den Verkehr geöffnet wird.
Le garçon a oublié son cahier à l'école, où la maîtresse l'a trouvé sous une chaise.
El señor de la esquina vende piñas, limones y un café que huele a madera mojada.
Паром уходит в семь часов, когда город ещё спит и на набережной никого нет.
العبّارة تغادر الميناء في السابعة صباحًا قبل أن تستيقظ المدينة.
渡し船は七時に港を出ます。町はまだ眠っています。
渡船七点离开码头,城市还在沉睡。
배는 일곱 시에 항구를 떠나고 도시는 아직 잠들어 있다.
नाव सुबह सात बजे बंदरगाह से निकलती है।
for (int i = 0; i < 1024; ++i) {\n\t\tsum += values[i] * 3.14159;\n\t}\n\n\nreturn sum;
Call 0800 123 4567 or write to the office, 12 Mill Lane, before 31/12/2024 at 23:59!
""" * 4

EDGES = [
    "", " ", "  ", "\n", "\r\n", "\t", "a", " a", "a ", "  a  ", "I'm sure he'd say they've", "I'M SURE HE'D SAY THEY'VE",
    "don'T we'LL 'RE 've'S", "it'\u017f I'\u017f", "'tis 'twas rock'n'roll", "'", "''s", "x'y", "1234567890", "12 345 6789",
    " 1  22   333    4444", "a1b22c333d4444", "3.14159,2.71828", "\u00bd\u2167\u0663\u0664\u0665 \u0967\u0968\u0969", "line\r\nline\r\n\r\nline",
    "line\n\n\nline", "end.\n\n", "end.\r\n", "a \n b", "a\n b", "a \n  \n   b", " \n \n", "\n\n  x", "\n\n\tx", "\t\tx", "\t x", "x\t\ty",
    "many        spaces", "trailing   ", "   leading", "a\u00a0b", "a\u00a0\u00a0b", "a\u0085b", "a\u0085\u0085 b\u0085", "a\u2028b\u2029c",
    "a\u2028\u2028 b", "a\u3000b\u3000\u3000c", "\u200bzero\u200b width", "\ufeffmark", "\x1c\x1d a", "a\x00b\x1fc\x7f", "\ufffd", "a\ufffd\ufffd b\ufffd\n",
    "\x04", "a\x04b", "!\x04!", ".\x06.\x06\n", "\U000fffff\U00040000", "\U0001f600", "\U0001f469\u200d\U0001f469\u200d\U0001f467 family",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f!", "\u2764\ufe0f\u2764\ufe0f", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\u6e21\u3057\u8239\u306f\u4e03\u6642",
    "\u57ce\u5e02\u8fd8\u5728\u6c89\u7761\u30022024\u5e74", "\ubc30\ub294 \uc77c\uacf1", "\u1107\u1162\u1102\u1173\u11ab", "\u0627\u0644\u0639\u0628\u0651\u0627\u0631\u0629 \u062a\u063a\u0627\u062f\u0631 \u0665\u0666\u0667",
    "\u0928\u093e\u0935 \u0938\u0941\u092c\u0939", "M\u00fcnchen", "Mu\u0308nchen", "cafe\u0301 café", "e\u0301a \u0301b", "q\u0323\u0307 q\u0307\u0323", "\u212b \u2126 \u212a", "\u0958 \u095c",
    "\u1e9b\u0323", "\uac00\u11a8 \u1100\u1161\u11a8", ">\u0338 <\u0338", "\U0001d15e\U0001d1bb", "<|endoftext|>", "a<|im_start|>user\nhi<|im_end|>\n", "<|im_start|",
    "<tool_call>", "</tool_call>", "<tool_call>{\"name\": 1}</tool_call>", "<tool_call><tool_call>x", "<tool_cal", "<tool> <tool", " <tool_call> ",
    "x<tool_call>'s", "<tool_call>\u0338", "\u00c5ngstr\u00f6m", "A\u030angstro\u0308m", "an \u00c5ngstr\u00f6m unit", "  \u00c5ngstr\u00f6m\n", "<<tool_call>>", "1<tool_call>2",
    "   <tool_call>   ", "\n\n</tool_call>\n\n", "if (x) {\n\t\treturn 0;\n\t}\n", "...!!!???\n\n\n...", "?!\r\n\r\nx", "https://example.org/a_b?c=1&d=2#e",
    "snake_case camelCase UPPER", "a,b;c:d", "$1,000.50 = \u20ac900", "----====----", "(\u201cquoted\u201d)\u2014dash", "100% \u00b5s \u00b2\u00b3", "\u01c5\u02b0\u00aa",
]

# Texts that an expression which looks at case and marks cuts otherwise.
CASES = [
    "iPhone", "an iPhone", "HTMLParser", "XMLHttpRequest", "getURLFor", "McDonald's", "ABC", " ABC", "ABCdef", "abcDEF", "aB", "Ab", "A", "AB\u0301",
    "AB\u0301CD", "AB\u0301cd", "\u0301ABC", "\u0301ABC ", "\u0301\u0301AB", ".\u0301AB", ".AB", ".ab", ".Ab!", "'M 'S 'm I'm", "\u01c5AB \u01c5ab", "\u02b0AB",
    "A\u02b0B", "AB\u00aaCD", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01", "\u0e20\u0e32\u0e29\u0e32ABC\u0e44\u0e17\u0e22", "\u6e21\u3057ABC\u8239abc",
    "\u0928\u093e\u0935ABC", "a/b", "//", "a//\n/b", "!/\n/!", " /usr/bin/\n\n/x", "/\r\n", "\n/A", "1/2", " /A", "/\u0301A", "\u0301", "\u0301\n", " \u0301 ", "\n\u0301A",
    "\u0301 \u0301a\u0301A\u0301", "\u20e3A\u20e3", "ABC1DEF", "A1b2", "A\u00e4\u00c4 \u00c4\u00e4", "\u0130stanbul \u0131l", "\u1e9e\u00df", "\u10d0\u1c90 \u10d0", "\u13a0\uab70", "\u24b6\u24d0",
]

ADDED = [("<|endoftext|>", True), ("<|im_start|>", True), ("<|im_end|>", True), ("<tool", False), ("<tool_call>", False),
         ("<tool_call>{", False), ("</tool_call>", False)]


def random_texts(count: int, seed: int, words: list[str]) -> list[str]:
    draw = random.Random(seed)
    between = [" ", " ", " ", " ", "", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2028", "\n\n", " \n", "'", "\u0301", "7"]
    return ["".join(draw.choice(words) + draw.choice(between) for _ in range(draw.randint(2, 6))) for _ in range(count)]


def pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)])
    expression = dict(gpt2=GPT2, llama3=LLAMA3, qwen2=QWEN2, tekken=TEKKEN)[name]
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"), byte_level(False)])


def byte_level(use_regex: bool) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def spelt(byte: int) -> str:
    """The character of GPT-2's alphabet."""
    printable = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    others = [b for b in range(256) if b not in printable]
    return chr(byte) if byte in printable else chr(256 + others.index(byte))


def train(name: str) -> dict:
    tokenizer = Tokenizer(models.BPE())
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizer(name)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    if name == "smollm":  # the published vocabulary lacks some bytes too
        alphabet -= {spelt(byte) for byte in (0x04, 0x06, 0xC0, 0xF1, 0xF5, 0xFF)}
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=sorted(alphabet), show_progress=False)
    tokenizer.train_from_iterator(TRAINING.split("\n"), trainer)
    # Contents differ from the normal form only where the token is found in normalized text.
    angstrom = "A\u030angstro\u0308m" if name == "qwen2" else "\u00c5ngstr\u00f6m"
    tokenizer.add_tokens([AddedToken(text, special=special, normalized=False) for text, special in ADDED])
    tokenizer.add_tokens([AddedToken(angstrom, special=False, normalized=True)])
    file = json.loads(tokenizer.to_str())
    if name == "llama3":
        # Every third merge is taken away: tokens that only ignore_merges finds.
        model = file["model"]
        model["ignore_merges"] = True
        kept = [merge for i, merge in enumerate(model["merges"]) if i % 3]
        model["merges"] = kept
    if name == "gpt2":
        file["model"]["merges"] = [" ".join(merge) for merge in file["model"]["merges"]]
    return file


def as_library(file: dict) -> Tokenizer:
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.encode_special_tokens = True
    return tokenizer


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def write_small(out: pathlib.Path) -> None:
    texts = EDGES + random_texts(160, 27, TRAINING.split() + EDGES) + CASES + random_texts(100, 29, CASES)
    draw = random.Random(28)
    rows = {}
    for name in ("gpt2", "smollm", "llama3", "qwen2", "tekken"):
        file = train(name)
        tokenizer = as_library(file)
        (out / f"bpe_{name}.json").write_text(json.dumps(file, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        ids = [ids_of(tokenizer, text) for text in texts]
        # The library takes non-ASCII names of added tokens for spellings of bytes when it decodes: left out.
        known = [i for i in range(tokenizer.get_vocab_size()) if "ngstr" not in tokenizer.id_to_token(i)]
        decoded = [[draw.choice(known) for _ in range(6)] + draw.sample(known[-7:], 2) for _ in range(40)]
        rows[name] = dict(ids=ids, decoded=[[row, tokenizer.decode(row, skip_special_tokens=True)] for row in decoded])
        file["model"]["ignore_merges"] = not file["model"].get("ignore_merges")
        other = as_library(file)
        differ = sum(ids_of(other, text) != row for text, row in zip(texts, ids))
        print(f"{name}: {tokenizer.get_vocab_size()} tokens, {sum(map(len, ids))} ids; ignore_merges turned around would change {differ}")
    whole = json.dumps(dict(texts=texts, tokenizers=rows), ensure_ascii=False, separators=(",", ":"))
    (out / "bpe_texts.json").write_text(whole + "\n", encoding="utf-8")


def from_gguf(path: pathlib.Path) -> Tokenizer:
    import gguf  # only here

    fields = gguf.GGUFReader(path).fields
    assert fields["tokenizer.ggml.pre"].contents() == "smollm"
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizer("smollm")
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([token for token, kind in zip(tokens, types) if kind == 3])
    tokenizer.encode_special_tokens = True
    return tokenizer


def try_gguf(path: pathlib.Path, lines: pathlib.Path, out: pathlib.Path) -> None:
    from transformers import AutoTokenizer  # only here

    library = from_gguf(path)
    auto = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    texts = lines.read_text(encoding="utf-8").split("\n")
    ids = [ids_of(library, text) for text in texts]
    same = sum(auto(text, add_special_tokens=False)["input_ids"] == row for text, row in zip(texts, ids))
    print(f"{len(texts)} texts, {sum(map(len, ids))} ids; AutoTokenizer gives the same for {same}")
    out.write_text("".join(" ".join(map(str, row)) + "\n" for row in ids))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to, of --gguf a file")
    parser.add_argument("--gguf", type=pathlib.Path, help="a file whose vocabulary is tried")
    parser.add_argument("--lines", type=pathlib.Path, help="texts for --gguf, one a line")
    args = parser.parse_args()
    if args.gguf:
        try_gguf(args.gguf, args.lines, args.out)
    else:
        write_small(args.out)


if __name__ == "__main__":
    main()
