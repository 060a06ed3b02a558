"""`syrinx speak --dry-run` on many texts at once, shared by the judges of the English front end."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Reading:
    """How one text is read out; `words` are the objects of `rules`, their offsets in bytes of this text."""

    words: list[dict]
    phonemes: str

    def spoken(self) -> str:
        return " ".join(word["word"] for word in self.words)


def default_binary() -> str:
    return os.environ.get("SYRINX_BINARY", str(ROOT / "build" / "release" / "syrinx"))


def add_arguments(parser) -> None:
    parser.add_argument("--syrinx", default=default_binary(), help="the program (SYRINX_BINARY, else the release build)")
    parser.add_argument("--lexicon", help="folder of the English lexicon, if not the installed one")
    parser.add_argument("--voice", help="a voice of the pronunciation that is judged; American by default")


def read_all(options, texts: list[str]) -> list[Reading]:
    """One process reads all; a blank line, which always ends a sentence, stands between two texts."""
    command = [options.syrinx, "speak", "--dry-run", "--plain"]
    for name in ("lexicon", "voice"):
        if getattr(options, name):
            command += ["--" + name, getattr(options, name)]
    content, begins = bytearray(), []
    for text in texts:
        begins.append(len(content))
        content += text.encode() + b"\n\n"
    done = subprocess.run([*command, "-"], input=bytes(content), capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr.decode().strip()}")
    readings = [Reading([], "") for _ in texts]
    at = 0
    for line in done.stdout.splitlines():
        sentence = json.loads(line)
        while at + 1 < len(texts) and begins[at + 1] <= sentence["begin"]:
            at += 1
        reading = readings[at]
        reading.phonemes = (reading.phonemes + " " + sentence["phonemes"]).strip()
        for word in sentence["rules"]:
            reading.words.append({**word, "begin": word["begin"] - begins[at], "end": word["end"] - begins[at]})
    return readings
