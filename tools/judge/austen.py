#!/usr/bin/env python3
"""Plain text of the novels in Debian's package r-cran-janeaustenr, without R.

usage: austen.py RDX RDB > text           sysdata.rdx and sysdata.rdb, or those of data/, of the unpacked package
"""
import gzip
import re
import struct
import sys
import zlib

PAIR = b"\x00\x00\x00\x0d\x00\x00\x00\x02"  # an integer vector of two: offset and length of a blob


def strings(blob):
    """R's serialised character vectors: flag words, then ASCII strings with their length."""
    at = 0
    while (at := blob.find(b"\x00\x04\x00\x09", at)) >= 0:
        size = struct.unpack(">i", blob[at + 4:at + 8])[0]
        if 0 <= size < 10000:
            yield blob[at + 8:at + 8 + size].decode("latin-1")
            at += 8 + size
        else:
            at += 4


def main():
    raw = open(sys.argv[1], "rb").read()
    try:
        index = gzip.decompress(raw)
    except OSError:
        index = zlib.decompress(raw)
    data = open(sys.argv[2], "rb").read()
    seen = set()
    for match in re.finditer(re.escape(PAIR), index):
        offset, length = struct.unpack(">ii", index[match.end():match.end() + 8])
        if length < 100 or (offset, length) in seen:
            continue
        seen.add((offset, length))
        for line in strings(zlib.decompress(data[offset + 4:offset + length])):
            print(line)


if __name__ == "__main__":
    main()
