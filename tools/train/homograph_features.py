"""Features of a homograph's neighbours, by the names and rules of src/models/g2p/homographs.cc, which must not differ."""

from __future__ import annotations

WORD, LETTERS, MARK, PHONEMES = range(4)  # text::TokenKind
AROUND, SIDES, CLASS_SIDES, NEAR = 3, 6, 8, 10  # tokens on each side
LEAST_LETTERS = 4  # of a word that counts wherever it stands
LOWER = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}


def fnv(text: str) -> int:
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def lower(text: str) -> str:
    return text.translate(LOWER)


def shape(text: str) -> str:
    upper = any("A" <= c <= "Z" for c in text)
    if upper and not any("a" <= c <= "z" for c in text) and len(text.encode()) > 1:
        return "X"
    return "Xx" if text and "A" <= text[0] <= "Z" else "x"


class Neighbours:
    """The tokens around tokens[i]; `classes` are those of word_classes.count()."""

    def __init__(self, tokens: list[dict], i: int, classes: dict[str, str]) -> None:
        self.tokens, self.i, self.classes = tokens, i, classes

    def token(self, d: int) -> dict | None:
        return self.tokens[self.i + d] if 0 <= self.i + d < len(self.tokens) else None

    def word(self, d: int) -> str:
        token = self.token(d)
        if token is None:
            return "<s>" if d < 0 else "</s>"
        return "#" if token["number"] else lower(token["text"])

    def word_class(self, d: int) -> str:
        token = self.token(d)
        if token is None:
            return "S" if d < 0 else "E"
        if token["number"]:
            return "#"
        if token["kind"] == MARK:
            return "." if token["text"] in ".!?…" else token["text"]
        if token["kind"] != WORD:
            return "p"
        word = lower(token["text"]).split("-")[-1]
        if word in self.classes:
            return self.classes[word]
        if "A" <= token["text"][:1] <= "Z":
            return "P"
        known = (self.classes.get("~" + word[-n:]) for n in (4, 3, 2) if len(word) >= n)
        return next(("~" + name for name in known if name), "?")


def words_of(near: Neighbours) -> list[str]:
    word = {d: near.word(d) for d in range(-AROUND, AROUND + 1) if d}
    out = [f"{d}={w}" for d, w in word.items()]
    out += [f"-2-1={word[-2]} {word[-1]}", f"-1+1={word[-1]} {word[1]}", f"+1+2={word[1]} {word[2]}"]
    for d in (-2, -1, 1, 2):
        token = near.token(d)
        if token is None:
            continue
        out.append(f"{d}^{shape(token['text'])}")
        if token["kind"] == WORD:
            out += [f"{d}~{word[d][-n:]}" for n in (2, 3) if len(word[d]) > n]
    return out


def bags_of(near: Neighbours) -> list[str]:
    out = []
    for d in range(-NEAR, NEAR + 1):
        token = near.token(d) if d else None
        if token is None or token["kind"] != WORD:
            continue
        word = lower(token["text"])
        if len(word) >= LEAST_LETTERS:
            out.append("near=" + word)
        if abs(d) <= SIDES:
            out.append(("l=" if d < 0 else "r=") + word)
    return out


def classes_of(near: Neighbours) -> list[str]:
    kind = {d: near.word_class(d) for d in range(-CLASS_SIDES, CLASS_SIDES + 1) if d}
    out = [f"c{d}={kind[d]}" for d in (-3, -2, -1, 1, 2, 3)]
    groups = {"c-2-1": (-2, -1), "c-1+1": (-1, 1), "c+1+2": (1, 2), "c-2-1+1": (-2, -1, 1), "c-1+1+2": (-1, 1, 2),
              "c-3-2-1": (-3, -2, -1), "c+1+2+3": (1, 2, 3)}  # fmt: skip
    out += [name + "".join(" " + kind[d] for d in places) for name, places in groups.items()]
    for name, step, end in (("lc=", -1, "S"), ("rc=", 1, "E")):
        for d in range(step, step * (CLASS_SIDES + 1), step):
            if kind[d] == end:
                break
            out.append(name + kind[d])
    return out


def features(near: Neighbours) -> list[str]:
    return ["bias", "shape=" + shape(near.token(0)["text"])] + words_of(near) + bags_of(near) + classes_of(near)
