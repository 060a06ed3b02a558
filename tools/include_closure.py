"""Which files a source is made of: what it includes, and the sources behind the headers that it includes.

A header of src/ stands for the source of its name, and for every source of its folder, or of cpu/ in it, that includes it
first.
"""

import functools
import pathlib
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@functools.cache
def sources(root):
    return Sources(root)


class Sources:
    """The sources of a tree by name, as git names them."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.behind = {}  # header -> its sources
        for path in sorted((self.root / "src").rglob("*.cc")):
            name = path.relative_to(self.root).as_posix()
            headers = {name[:-3] + ".h", name.replace("/cpu/", "/")[:-3] + ".h"}
            folder = name.replace("/cpu/", "/").rpartition("/")[0]
            headers |= {first for first in self.included(name)[:1] if first.rpartition("/")[0] == folder}
            for header in headers:
                self.behind.setdefault(header, set()).add(name)

    @functools.cache
    def included(self, name):
        """What a file includes of the tree, in order."""
        path = self.root / name
        text = path.read_text(encoding="utf-8", errors="replace")
        found = []
        for include in INCLUDE.findall(text):
            places = [self.root / "src" / include, self.root / "include" / include, path.parent / include, self.root / include]
            place = next((place for place in places if place.is_file()), None)
            if place is not None:
                found.append(place.resolve().relative_to(self.root.resolve()).as_posix())
        return tuple(found)

    def closure(self, name):
        """Every file of the tree that the program of this source is made of."""
        seen, left = {name}, [name]
        while left:
            file = left.pop()
            fresh = ({*self.included(file)} | self.behind.get(file, set())) - seen
            seen |= fresh
            left += fresh
        return seen
