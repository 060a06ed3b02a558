#!/usr/bin/env python3
"""Texts with Markdown's marks, and what is left of their words by markdown-it-py, an implementation of CommonMark.

  python3 tools/reference/markdown_texts.py tests/data/text
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re

import markdown_it

TEXTS = (
    "Plain words.", "Two *small* and **large** words, and ***both***.", "A _small_ one, __a large one__.", "snake_case and 5*3 and 2 * 3 * 4",
    "# Title\n\nText.", "## Title ##\nText.", "###### C#\n", "#hashtag and # none", "Title\n=====\n\nText", "Title\n---\nText",
    "- one\n- two\n- three", "* one\n* two", "+ one\n  + two\n", "1. one\n2. two\n10. ten", "3) three", "- **Bold** one\n- `code` two\n\nBehind.",
    "> quoted\n> twice\n\nnot", "> > deep", "Text\n\n---\n\nText", "* * *", "___", "Use `a * b` here.", "Use ``a ` b`` here.",
    "```python\nx = a * b  # **no**\n```\nThen.", "~~~\ncode\n~~~\n", "See [the page](https://x.org/a_b) now.", "[**bold** page](https://x.org)",
    "![a cup](cup.png)", "See <https://x.org/a_b>.", "Write to <me@x.org>.", "[page](https://x.org/a_(b)_c) now", "[page](https://x.org \"title\")",
    "\\*no\\* and \\# and \\[x\\]", "1\\. and C:\\dir", "~~gone~~ here", "a < b and c > d", "f**** and *** and **", "a[1] and [2]", "x * y* z",
    "**Wichtig:** Die *Größe* beträgt `5 m`.\n\n- Öl\n- Äpfel", "**Größe**n und *Maße*", "Le **mot** d'ordre : *bon*\u00a0! [Voir](https://x.fr/é).",
    "**Важно:** это _очень_ важно, `код`.\n\n1. один\n2. два", "слово_с_чертой и *слово*", "这是**重点**内容，*很*好。\n\n- 一\n- 二",
    "**重要**なのは`これ`です。[ここ](https://x.jp)を見る。", "**¡Hola!** ¿Qué *tal*? __Bien__.", "**مهم** جدا", "**강조**와 *기울임*",
    "Line one\\\nline two", "Line one  \nline two", "*one\ntwo*", "\"*quoted*\"", "(**in brackets**)",
    "*a*, **b**; _c_. __d__!", "**a**\u2014*b*", "`*`", "- **Tea**: *hot*\n- **Juice**: cold", "\u201e**Ja**\u201c, sagte *er*.", "3 < 4 and ~5", "# 1. One\n\n#### Two `x`", "`a` and `b_c`",
    "**\u4f60\u597d\u3002** \u518d\u898b", "**`code`**", "*[page](https://x.org)*",
)


def words(token) -> str:
    """Of a block's line of text."""
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.children is not None:
        return "".join(words(child) for child in token.children)
    return token.content


def plain(text: str) -> str:
    lines = []
    number = ""
    for token in markdown_it.MarkdownIt("commonmark").enable("strikethrough").parse(text):
        if token.type == "list_item_open" and token.info:
            number = token.info + token.markup + " "
        elif token.type in ("inline", "fence", "code_block"):
            lines.append(number + words(token))
            number = ""
    return re.sub(r"[ \n\t]+", " ", "\n".join(lines)).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    texts = [{"text": text, "plain": plain(text)} for text in TEXTS]
    made = {"made by": f"markdown-it-py {markdown_it.__version__}", "texts": texts}
    (folder / "markdown.json").write_text(json.dumps(made, ensure_ascii=True, indent=1) + "\n")


if __name__ == "__main__":
    main()
