"""Finds sources that can be read as one: the headers of all are then gone through once.  For tools/tidy, and for tests:
Usage: python3 tools/source_groups.py MOST FILE...   prints the files of each group on one line

What a file declares for itself (in its nameless namespace, or constant) would meet that of others.  Two files fit where
neither holds a word that the other declares, nor defines what it defines; a file with macros of its own goes alone.
"""

import pathlib
import re
import sys

NAMELESS = {"namespace {": True, "}  // namespace": False}
ALIAS = re.compile(r"(?:using|namespace) (?:(\w+) =.*|(?:namespace )?(?:\w*::)*(\w+);)$")
CONSTANT = re.compile(r"(?:static|constexpr|const) [^(=]*[={]")
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|union|enum(?: class)?) ([\w:]+)")
FUNCTION = re.compile(r"[^()=]*?([\w:~]+)\(")  # the first name in front of a bracket
VALUE = re.compile(r"[^={;]*?(\w+)(?:\[\w*\])* ?[={;]")
NEXT_VALUE = re.compile(r", (k[A-Z]\w*)")


class Source:
    def __init__(self, path):
        text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', pathlib.Path(path).read_text())
        self.alone = "\n#define" in text
        self.words, self.local = set(), {}  # local: name -> the whole line of an alias, which others may have too, or None
        self.defined = set()  # functions, by name: two files may be there for the same ones, of which a build takes one
        nameless = False
        for line in text.splitlines():
            nameless = NAMELESS.get(line, nameless)
            code = line.partition("//")[0].rstrip()
            if not code.startswith("#include"):
                self.words.update(re.findall(r"\w+", code))
            if line not in NAMELESS and (code[:1].isalpha() or code[:1] == "["):
                self.local.update(declared(code, nameless))
                if not nameless and not code.endswith(";") and (function := FUNCTION.match(code)):
                    self.defined.add(function[1])

    def fits(self, other):
        apart = self.alone or other.alone or self.defined & other.defined
        return not apart and self._is_strange_to(other) and other._is_strange_to(self)

    def _is_strange_to(self, other):
        return not any(name in other.words and (alias is None or other.local.get(name) != alias)
                       for name, alias in self.local.items())


def declared(line, nameless):
    """(name, alias or None) of what a line at the left edge declares for its file alone."""
    alias, constant, kind = ALIAS.match(line), CONSTANT.match(line), TYPE.match(line)
    if alias:
        return [(alias[1] or alias[2], line if line.endswith(";") else None)]
    if not constant and (not nameless or line.startswith("static_assert")):
        return []
    found = not constant and (kind or FUNCTION.match(line)) or VALUE.match(line)
    if not found or "::" in found[1] or found[1].isupper():  # a member of something; a test, by its macro
        return []
    return [(found[1], None)] + [(name, None) for name in NEXT_VALUE.findall(line)]


def source_groups(paths, most):
    """Lists of paths that go together, in the order in which they came."""
    groups = []
    for path in paths:
        source = Source(path)
        fitting = (group for group in groups if len(group) < most and all(source.fits(other) for _, other in group))
        group = next(fitting, None)
        if group is None:
            groups.append(group := [])
        group.append((path, source))
    return [[path for path, _ in group] for group in groups]


if __name__ == "__main__":
    for group in source_groups(sys.argv[2:], int(sys.argv[1])):
        print(*group)
