"""English made comparable before words are counted: case, punctuation, numbers as words, a few spellings.

The recogniser writes "$3.50", "1984" or "twelve" as it likes; both sides go through the same rules, so only what was
heard wrongly is left.
"""

from __future__ import annotations

import pathlib
import re

_ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
         "eighteen nineteen").split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
             "twelve": "twelfth"}
_SCALES = ("thousand", "million", "billion")
_NUMBER_WORDS = {*_ONES, *_TENS, "hundred", *_SCALES}
_MONEY = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent")}
_SAME = {"mr": "mister", "mrs": "missus", "dr": "doctor", "grey": "gray", "neighbour": "neighbor", "metre": "meter",
         "metres": "meters", "kilometre": "kilometer", "kilometres": "kilometers", "colour": "color", "okay": "ok",
         "percents": "percent", "ii": "two", "iii": "three", "km": "kilometers", "pennies": "pence"}


def cardinal(n: int) -> list[str]:
    if n < 20:
        return [_ONES[n]]
    if n < 100:
        return [_TENS[n // 10 - 2], *([_ONES[n % 10]] if n % 10 else [])]
    if n < 1000:
        return [_ONES[n // 100], "hundred", *(cardinal(n % 100) if n % 100 else [])]
    for power, name in reversed(list(enumerate(_SCALES, 1))):
        if n >= 1000**power:
            head, tail = divmod(n, 1000**power)
            return [*cardinal(head), name, *(cardinal(tail) if tail else [])]
    raise AssertionError


def ordinal(n: int) -> list[str]:
    *head, last = cardinal(n)
    if last in _ORDINALS:
        return [*head, _ORDINALS[last]]
    return [*head, (last[:-1] + "ie" if last.endswith("y") else last) + "th"]


def year(n: int) -> list[str]:
    if not 1100 <= n <= 2099 or 2000 <= n <= 2009:
        return cardinal(n)
    head, tail = divmod(n, 100)
    return cardinal(head) + (["hundred"] if tail == 0 else ["oh", _ONES[tail]] if tail < 10 else cardinal(tail))


def _plain(digits: str, is_year: bool) -> list[str]:
    whole, point, part = digits.replace(",", "").partition(".")
    if point and part:
        return [*cardinal(int(whole or 0)), "point", *(_ONES[int(d)] for d in part)]
    return year(int(whole)) if is_year else cardinal(int(whole))


def _number(match: re.Match) -> str:
    sign, digits, ending, scale = match.group("sign", "digits", "ending", "scale")
    whole, _, part = digits.replace(",", "").partition(".")
    if len(whole) > 12:
        return match.group(0)
    if ending in ("st", "nd", "rd", "th"):
        return " ".join(ordinal(int(whole)))
    if sign:
        unit, small = _MONEY[sign]
        if scale:
            return " ".join([*_plain(digits, False), scale, unit + "s"])
        words = [*cardinal(int(whole)), unit + ("" if whole == "1" else "s")]
        if part.strip("0"):
            words += ["and", *cardinal(int(part.ljust(2, "0")[:2])), small + "s"]
        return " ".join(words)
    words = _plain(digits, "," not in digits and "." not in digits and len(whole) == 4)
    return " ".join(words + ([scale] if scale else []) + (["percent"] if ending == "%" else []))


_PATTERN = re.compile(r"(?P<sign>[$£€])?\s?(?P<digits>\d+(?:,\d{3})*(?:\.\d+)?)(?P<ending>(?:st|nd|rd|th)\b|%)?"
                      r"(?:\s(?P<scale>thousand|million|billion)\b)?")


def normalise(text: str) -> list[str]:
    text = text.lower().replace("’", "'").replace("-", " ").replace("–", " ")
    text = _PATTERN.sub(lambda m: f" {_number(m)} ", re.sub(r"(\d)\s+%", r"\1%", text))
    words = re.sub(r"[^a-z' ]", " ", text).replace(" per cent", " percent").split()
    words = [_SAME.get(w.strip("'"), w.strip("'")) for w in words]
    words = [w for w in words if w]
    joins = [i for i, w in enumerate(words) if w == "and" and 0 < i < len(words) - 1
             and words[i - 1] in ("hundred", *_SCALES) and words[i + 1] in _NUMBER_WORDS]
    return [w for i, w in enumerate(words) if i not in joins]


def read_sentences(path: pathlib.Path) -> list[tuple[str, str]]:
    """(written, spoken) of each line: the two with a tab between, or the same."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            written, _, spoken = line.partition("\t")
            rows.append((written.strip(), (spoken or written).strip()))
    if not rows:
        raise SystemExit(f"{path} holds no sentence")
    return rows
