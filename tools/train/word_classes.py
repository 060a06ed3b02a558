"""Parts of speech that English words and endings may have, counted in MASC, the Manually Annotated Sub-Corpus of the Open
American National Corpus (its licence allows any use, commercial development included): the files of masc_tagged.zip of
nltk/nltk_data at 5db857e, unpacked."""

from __future__ import annotations

import collections
import pathlib
import re

# Penn tags to letters: tags that say the same about a neighbour share one.
LETTERS = {
    "NN": "n", "NNS": "s", "NNP": "p", "NNPS": "p", "FW": "n", "VB": "v", "VBP": "V", "VBD": "d", "VBN": "e", "VBG": "g",
    "VBZ": "z", "MD": "m", "JJ": "j", "JJR": "j", "JJS": "j", "RB": "r", "RBR": "r", "RBS": "r", "RP": "i", "IN": "i",
    "TO": "t", "DT": "D", "PDT": "D", "PRP": "q", "PRP$": "o", "WDT": "w", "WP": "w", "WP$": "w", "WRB": "w", "CC": "c",
    "CD": "#", "EX": "x", "UH": "u", "POS": "k",
}  # fmt: skip
WORD = re.compile(r"[A-Za-z][A-Za-z']*")
LEAST_OF_A_WORD, LEAST_OF_AN_ENDING = 2, 10  # occurrences
ENDINGS = (4, 3, 2)  # letters, in the order in which they are looked up


def tagged_words(folder: pathlib.Path):
    """Words and their letters; contractions, which the corpus cuts, in one piece: "don't" is "Vr"."""
    for path in sorted(folder.glob("*/*.txt")):
        last = None
        for token in path.read_text(encoding="utf-8", errors="replace").split():
            word, _, tag = token.rpartition("_")
            word, letter = word.replace("’", "'"), LETTERS.get(tag)
            if letter and last and (word.lower() == "n't" or word.startswith("'")) and WORD.fullmatch(last[0] + word):
                yield last[0] + word, last[1] + letter
                last = None
                continue
            if last:
                yield last
            last = (word, letter) if letter and WORD.fullmatch(word) else None
        if last:
            yield last


def name_of(counts: collections.Counter, least_share: float) -> str:
    frequent = [kind for kind, n in counts.most_common() if n >= least_share * counts.total()][:3]
    return "".join(sorted(frequent or [counts.most_common(1)[0][0]]))


def count(folder: pathlib.Path) -> dict[str, str]:
    """The class of each word, in small letters, and of each ending, as "~ing"."""
    words, endings = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for word, letter in tagged_words(folder):
        words[word.lower()][letter] += 1
    if not words:
        raise SystemExit(f"{folder} holds no folder of tagged texts")
    for word, counts in words.items():
        kind = counts.most_common(1)[0][0]
        if counts.total() <= LEAST_OF_AN_ENDING and kind != "p":  # the frequent words are not like those to come
            for letters in ENDINGS:
                if len(word) > letters + 1:
                    endings["~" + word[-letters:]][kind] += 1
    found = {word: name_of(counts, 0.12) for word, counts in words.items() if counts.total() >= LEAST_OF_A_WORD}
    return found | {e: name_of(c, 0.2) for e, c in endings.items() if c.total() >= LEAST_OF_AN_ENDING}
