"""Phoneme symbols and voices of Kokoro v1.0 (specification: Kokoro, sections 1.3 and 2.1)."""

from __future__ import annotations

import pathlib

import numpy as np

_RUNS = {1: ";:,.!?", 9: "—…\"()“” ", 17: "\u0303ʣʥʦʨᵝ\uab67AI", 31: "O", 33: "Q", 35: "ST", 39: "W", 41: "Yᵊabcdef",
         50: "hijklmnopqrstuvwxyzɑɐɒæ", 75: "βɔɕç", 80: "ɖðʤə", 85: "ɚɛɜ", 90: "ɟ", 92: "ɡ", 99: "ɥ", 101: "ɨɪʝ",
         110: "ɯɰŋɳɲɴø", 118: "ɸθœ", 123: "ɹ", 125: "ɾɻ", 128: "ʁɽʂʃʈʧ", 135: "ʊʋ", 138: "ʌɣɤ", 142: "χʎ", 147: "ʒʔ",
         156: "ˈˌː", 162: "ʰ", 164: "ʲ", 169: "↓", 171: "→↗↘", 177: "ᵻ"}
IDS = {symbol: first + i for first, run in _RUNS.items() for i, symbol in enumerate(run)}


def ids(phonemes: str) -> list[int]:
    """Ids without the zeros at the ends; symbols that the model does not know are dropped."""
    return [IDS[symbol] for symbol in phonemes if symbol in IDS]


def voice_row(path: pathlib.Path, width: int, phoneme_count: int) -> np.ndarray:
    """The style row that the maker's code takes: count - 1, within the file's 510 rows."""
    values = np.fromfile(path, "<f4")
    if values.size == 0 or values.size % width:
        raise SystemExit(f"{path}: {values.size} numbers are not rows of {width}")
    rows = values.reshape(-1, width)
    return rows[min(max(phoneme_count - 1, 0), len(rows) - 1)]
