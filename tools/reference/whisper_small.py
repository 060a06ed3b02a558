"""OpenAI's tokenizer class on the small vocabulary of tests/data/whisper, put in place of the published ones."""

from __future__ import annotations

import json
import pathlib
import sys

import tiktoken
import whisper.decoding
import whisper.tokenizer
import whisper.transcribe

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "checkpoints"))
from draws import Draws  # noqa: E402, F401
from whisper_tokenizer import LANGUAGES, SPLIT, alphabet, specials, times  # noqa: E402

# transcribe is also the name of a function in the package.
transcribe_module = sys.modules["whisper.transcribe"]


def encoding(folder: pathlib.Path) -> tiktoken.Encoding:
    vocab = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    byte_of = {letter: byte for byte, letter in enumerate(alphabet())}
    ranks = {bytes(byte_of[c] for c in spelt): i for spelt, i in vocab.items()}
    names = [name.replace("nocaptions", "nospeech") for name in [*specials(), *times()]]
    return tiktoken.Encoding(name="small", pat_str=SPLIT, mergeable_ranks=ranks,
                             special_tokens={name: len(ranks) + i for i, name in enumerate(names)})


def install(folder: pathlib.Path) -> whisper.tokenizer.Tokenizer:
    """Patches get_tokenizer of the modules that decode; returns the tokenizer for English."""
    small = encoding(folder)
    whisper.tokenizer.LANGUAGES = {code: whisper.tokenizer.LANGUAGES[code] for code in LANGUAGES}

    def get_tokenizer(multilingual, *, num_languages=5, language=None, task=None):
        return whisper.tokenizer.Tokenizer(encoding=small, num_languages=len(LANGUAGES), language=language or "en",
                                           task=task or "transcribe")

    whisper.decoding.get_tokenizer = get_tokenizer
    transcribe_module.get_tokenizer = get_tokenizer
    return get_tokenizer(True)
