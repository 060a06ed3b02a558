"""Reference of the text side of Pocket TTS: preparation, chunks, token ids, by the maker's own functions."""

from __future__ import annotations

import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "checkpoints"))

import pocket_maker as maker  # noqa: E402
from pocket_configs import text_settings  # noqa: E402

_SWITCHES = dict(pad_with_spaces_for_short_inputs=False, remove_semicolons=False, append_terminal_punctuation=True,
                 capitalize_first_letter=True, replace_characters={})
_NAMES = ("english", "english_2026-01", "english_2m", "french", "german", "spanish")
SETTINGS = {
    "plain": {},
    **{name: {k: v for k, v in text_settings(name).items() if k in _SWITCHES} for name in _NAMES},
    "bare": dict(append_terminal_punctuation=False, capitalize_first_letter=False),
    "custom": dict(pad_with_spaces_for_short_inputs=True, replace_characters={
        "&": " and ", "ß": "ss", "…": "...", "\t": "", "ä": "AE", "#": "№", "*": ""}),
}

TEXTS = (
    "hello world", "hello world,", "Hello world.", "  Hello  world  ", "Hi.", "hi", "I", "No!", "a b c d", "a b c d e",
    'he said "hi"', 'he said "hi,"', 'he said "hi."', "(what?)", "(what)", "wait -", "wait — ", "wait – –", "hello :-)",
    '"Hi?", she said', "« Oui ! » dit-il ; non", "it’s  a\n\ntest", "it‘s\r\na\rtest", "a\tb", "a\t\tb", "...", "…",
    "ends with ellipsis…", '"', "'", '."', "?!", ",", ";:-", "-", "hello;", "one; two; three", "1st of May", "ßtraße",
    "ŉ is one letter", "ǆ and ǅ", "ﬁre", "éa", "e\u0301a", "ⓐ", "ⅷ", "Ⅷ", "ʰa", "ªb", "你好 😀", "😀", "\u0661\u0662",
    "x\u00a0y\u2003z\u3000w", "\u00a0\u2028edge\u0085\x1c", "\ufeffmark", "zero\u200bwidth", "three   spaces    four",
    "a . b", "Wait , what ?", "Well ... , yes", "What? ; No! : Yes… , Maybe", "One.,two",
    "“Quoted” text „unten“ [x] (y)", "¿Qué? ¡Sí!", "R&D & Q&A", "tabs\tand…dots ß", "a — b – c",
    "Ends in quote.’ ”)", "ends in digits 42", "50%", "a/b",
    "under_score", "e.g. this", "Mr. Smith went.", "http://example.org/a?b=c", "ends in bracket]",
    "ends (in) brackets )",
    "weak, then space , ", "so-", "so--", "so:—", "\t \n", "", "   ", "\u3000", "*", "* *",
)

_LONG = ("It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want "
         "of a wife. However little known the feelings or views of such a man may be on his first entering a "
         "neighbourhood, this truth is so well fixed in the minds of the surrounding families, that he is considered "
         "as the rightful property of some one or other of their daughters.")
# Text, limits of tokens, settings.
SPLITS = (
    ("Hello world.", (50,), ("english", "english_2026-01")),
    ("Hi.", (50, 1), ("english_2026-01", "english")),
    ("It costs 3.50 dollars. e.g. this one.", (50, 20, 5), ("plain", "english")),
    ("hello world. how are you? fine... thanks! and you", (50, 12, 5), ("plain",)),
    ("I was born in 1980. 5 years later we moved. Then we left.", (50, 20, 8), ("plain",)),
    ("He said \"Hi.\" Then left. \"Go!\" she cried.", (50, 12, 6), ("plain", "german")),
    ("One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve; thirteen: fourteen", (50, 16, 10),
     ("plain",)),
    ("Pay 1,000,000 dollars now or else you will never see the money again my friend", (50, 25, 10), ("plain",)),
    ("Supercalifragilisticexpialidocious is one word without any mark in it", (12,), ("plain",)),
    (_LONG, (50, 30), ("english",)),
    (_LONG + " " + _LONG, (50,), ("english",)),
    ("5². 3 items. v1. 2 more. 3.14.15 is no number. 7! 8 and 9? 10.", (10,), ("plain",)),
    ("Version 2.0.1. 3 bugs. x.5 y", (6,), ("plain",)),
    ("A. B. C. D. E. F. G.", (4, 6), ("plain",)),
    ("?! ... !!! What?! Really?? Yes!!!", (6,), ("plain",)),
    ("Wait -- what -- no. \"Well,\" she said; \"it is so: no more.\" The end", (14,), ("plain", "french")),
    ("« Oui ! » dit-il ; non : jamais. L’été… est là", (50, 12), ("french", "plain")),
    ("你好。世界！ Hello 你好. 😀 Bye", (50, 20), ("plain",)),
    ("line one\nline two.\n\nline three", (50, 10), ("english", "plain")),
    ("tab\there. no\u00a0break. three   spaces.", (50, 8), ("plain", "english")),
    ("one; two; three; four; five; six; seven; eight; nine; ten; eleven", (12,), ("plain", "german")),
    ("hi & bye… ß", (50,), ("custom",)),
    ("nothing is changed here", (50, 4), ("bare",)),
    ("x", (50,), ("bare", "english_2026-01")),
)

# What only the tokenizer sees: no preparation.
PIECES = (
    "Hello world.", "        Hello world.", "Hello  world", " Hello", "Hello ", "  ", " ", "", ".!...?", ",;:",
    "line\ttab", "Café ñ — “hi”", "Cafe\u0301", "你好 😀", "I do not know what to say of her, or of him.",
    "AAAAAAAAAAAAAAAAAAAA", "............",
    "a▁b", "▁", "▁▁", "\u00a0", "\x01\x02", "\U0001f469\u200d\U0001f469", "ﬁne ½ “x” …", "soft\u00adhyphen", "①②③ ①",
    "<0x41>", "<s>", "</s>", "<unk>", "<pad>", "x <s> y", "the<0xE4>", "QXZ and qxz", "line\nbreak\r", _LONG,
)


def _prepare(text: str, settings: dict) -> list | None:
    try:
        return list(maker.text_chunking.prepare_text_prompt(text, **(_SWITCHES | settings)))
    except ValueError:
        return None                    # "Text prompt cannot be empty"


def _prepared(text: str) -> dict:
    """Text and words' guess in the settings `plain`, and in those where they are others."""
    results = {name: _prepare(text, settings) for name, settings in SETTINGS.items()}
    return dict(text=text, results={k: v for k, v in results.items() if k == "plain" or v != results["plain"]})


def max_steps(tokens: int) -> int:
    return math.ceil((tokens / 3.0 + 2.0) * 12.5)


def split(tokenizer, text: str, limit: int, settings: dict) -> list[dict]:
    """The chunks of a text as generate_audio speaks them."""
    options = _SWITCHES | settings
    chunks = []
    for chunk in maker.text_chunking.split_into_best_sentences(tokenizer, text, limit, **options):
        prepared, guess = maker.text_chunking.prepare_text_prompt(chunk, **options)
        ids = tokenizer.encode(prepared)
        chunks.append(dict(text=chunk, prepared=prepared, ids=ids, frames_after_eos=guess + 2,
                           max_steps=max_steps(len(ids))))
    return chunks


def _tokenized(text: str, tokenizers: dict) -> dict:
    case = {"text": text}
    for name, tokenizer in tokenizers.items():
        ids = tokenizer.encode(text)
        case[name] = dict(ids=ids, decoded=tokenizer.decode(ids))
    if case["json"] == case["model"]:
        del case["json"]
    return case


def _lines(values: list) -> str:
    return "[\n" + ",\n".join("  " + json.dumps(value, ensure_ascii=False) for value in values) + "\n ]"


def reference(folder: pathlib.Path, out: pathlib.Path) -> None:
    """Writes text.json: settings, prepare, split, tokenize."""
    build = maker.text_conditioner.build_tokenizer
    sp = maker.text_conditioner.sentencepiece.SentencePieceProcessor
    count = sp(str(folder / "tokenizer.model")).vocab_size()
    tokenizers = dict(model=build(count, str(folder / "tokenizer.model")),
                      json=build(count, str(folder / "tokenizer.json"), "tokenizers"),
                      mapped=build(sp(str(folder / "mapped.model")).vocab_size(), str(folder / "mapped.model")))
    prepared = [_prepared(text) for text in TEXTS]
    cases = []
    for text, limits, names in SPLITS:
        for limit in limits:
            for name in names:
                chunks = split(tokenizers["model"], text, limit, SETTINGS[name])
                if split(tokenizers["json"], text, limit, SETTINGS[name]) != chunks:
                    raise SystemExit(f"the two forms of the tokenizer cut '{text}' differently")
                cases.append(dict(text=text, settings=name, max_tokens=limit, chunks=chunks))
    tokenized = [_tokenized(text, tokenizers) for text in PIECES]
    settings = json.dumps({name: _SWITCHES | values for name, values in SETTINGS.items()}, ensure_ascii=False, indent=2)
    out.write_text(f'{{\n "settings": {settings},\n "prepare": {_lines(prepared)},\n "split": {_lines(cases)},\n'
                   f' "tokenize": {_lines(tokenized)}\n}}\n', encoding="utf-8")
    print(f"{out}: {len(prepared)} texts in {len(SETTINGS)} settings, {len(cases)} splits, {len(tokenized)} encodings, "
          f"{out.stat().st_size:,} bytes")
