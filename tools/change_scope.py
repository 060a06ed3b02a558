#!/usr/bin/env python3
"""Says what the change since a commit must pass, by the tables of tools/layers.py.  Usage: tools/change_scope.py [COMMIT]

Without COMMIT it is the one in tests/gate_base, the last for which `scripts/test --all` passed.  The change is what the
working tree differs in; a file that moved counts at both ends; a commit that this clone does not have means everything.
Prints lines `KEY: WORDS` for scripts/test:
  stages        what scripts/test runs, in order
  numeric_asan  rooms of numbers whose tests run under the sanitizers too
  x86           models whose tests run with kernels for AVX2 (those of kernels and nn always do where the stage runs)
  tsan          folders of tests/ for the thread sanitizer
  fuzz          the seconds, then the targets whose sources changed
  tidy          sources for clang-tidy, or `all`
  changed_sources  those that changed themselves, or whose own header did
  note          what is shown to the user
"""

import pathlib
import subprocess
import sys

import layers
from include_closure import sources

ALWAYS = ("packages", "sources", "release", "voice", "real", "asan")
ORDER = ("packages", "sources", "release", "clients", "voice", "real", "x86", "asan", "fuzz", "tsan", "arm64", "tidy", "install")
ONLY_PROGRAM = {"clients", "install", "tidy_all", "fuzz_all"}  # not for a change of unit tests alone
FUZZ_BUDGET_S, FUZZ_MOST_S, FUZZ_LEAST_S = 240, 30, 4  # of all targets together; of one


def git(root, *arguments):
    run = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), *arguments], capture_output=True, check=False)
    return run.stdout.decode() if run.returncode == 0 else None


def changed_files(root, base):
    """Names of the files that differ from the commit, or None where it is not known."""
    if not base or git(root, "cat-file", "-e", base + "^{commit}") is None:
        return None
    changed = git(root, "diff", "-z", "--name-status", "--find-renames", base, "--")
    fresh = git(root, "ls-files", "-z", "--others", "--exclude-standard")
    if changed is None or fresh is None:
        return None
    words = [word for word in changed.split("\0") if word]
    names = set(fresh.split("\0")) - {""}
    while words:
        status = words.pop(0)
        for _ in range(2 if status[0] in "RC" else 1):
            names.add(words.pop(0))
    return sorted(names)


def is_read(path):
    if path in layers.READ:
        return True
    return not path.endswith(layers.UNREAD_SUFFIX) and layers.longest(layers.UNREAD, path) is None


def as_source(path):
    """A unit test and its folder's list count as the source that they stand for."""
    test = path.startswith("tests/") and path.split("/")[1] not in ("data", "e2e", "CMakeLists.txt")
    return ("src/" + path.removeprefix("tests/"), True) if test else (path, False)


class Scope:
    """What the change of these files asks for; None: of every file."""

    def __init__(self, root, files):
        self.root = pathlib.Path(root)
        self.everything = files is None
        if self.everything:
            listed = git(root, "ls-files", "-z")
            files = [name for name in (listed or "").split("\0") if name]
        self.read = [path for path in files if is_read(path)]
        self.added = {}  # stage -> the file that added it first
        self.numeric, self.tsan = set(), set()
        for path in self.read:
            self._add(path)
        self.fuzz = self._fuzz_targets()

    def _add(self, path):
        source, is_test = as_source(path)
        place = layers.longest(layers.ADDS, path) or layers.longest(layers.ADDS, source)
        for stage in layers.ADDS.get(place, ()):
            if is_test and stage in ONLY_PROGRAM:
                continue
            if stage == "numeric_asan":
                parts = source.split("/")[1:]
                self.numeric.add("/".join(parts[:2]) if parts[0] == "models" and len(parts) > 2 else parts[0])
            if stage == "tsan":
                self.tsan |= {*layers.TSAN.get(layers.longest(layers.TSAN, source), layers.ALL_TSAN)}
            self.added.setdefault(stage, path)
        if path.startswith("src/") and path.endswith("CMakeLists.txt"):
            self.added.setdefault("install", path)

    def _fuzz_targets(self):
        tree = sources(self.root)
        changed = {path for path in self.read if layers.longest(layers.UNFUZZED, path) is None}
        targets = sorted((self.root / "fuzz").glob("*_fuzz.cc"))
        names = [path.name.removesuffix("_fuzz.cc") for path in targets]
        if "fuzz_all" in self.added:
            return names
        return [name for name, path in zip(names, targets)
                if changed & tree.closure(path.relative_to(self.root).as_posix())
                or any(path.startswith(f"fuzz/corpus/{name}/") for path in changed)]

    def models(self):
        """Those of the rooms of numbers that are models; `models` is all of them."""
        return sorted(room for room in self.numeric if room.split("/")[0] == "models")

    def stages(self):
        if not self.read:
            return ["packages", "sources"]
        wanted = {*ALWAYS, *self.added}
        if self.fuzz:
            wanted.add("fuzz")
        if self.tidied():
            wanted.add("tidy")
        return [stage for stage in ORDER if stage in wanted]

    def tidied(self):
        return ["all"] if "tidy_all" in self.added else self.changed_sources()

    def changed_sources(self):
        tree = sources(self.root)
        found = set()
        for path in self.read:
            if path.startswith("src/") and (self.root / path).is_file():
                found |= {path} if path.endswith(".cc") else tree.behind.get(path, set())
        return sorted(found)

    def fuzz_seconds(self):
        return max(FUZZ_LEAST_S, min(FUZZ_MOST_S, FUZZ_BUDGET_S // max(len(self.fuzz), 1)))

    def lines(self):
        yield "stages: " + " ".join(self.stages())
        yield "numeric_asan: " + " ".join(sorted(self.numeric))
        yield "x86: " + " ".join(self.models())
        yield "tsan: " + " ".join(sorted(self.tsan))
        yield "fuzz: " + " ".join([str(self.fuzz_seconds()), *self.fuzz])
        yield "tidy: " + " ".join(self.tidied())
        yield "changed_sources: " + " ".join(self.changed_sources())

    def notes(self, base):
        if self.everything:
            yield f"the commit of tests/gate_base ({base or 'none'}) is not known here: everything counts as changed"
        else:
            yield f"{len(self.read)} files changed since {base[:12]} that a build or a test reads"
        reasons = {}
        for stage, path in self.added.items():
            reasons.setdefault(path, []).append(stage)
        for path, stages in reasons.items():
            yield f"{path} adds {', '.join(stages)}"
        if self.fuzz:
            yield f"{len(self.fuzz)} fuzz targets have changed sources: {self.fuzz_seconds()} s each"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    base = sys.argv[1] if len(sys.argv) > 1 else None
    if base is None:
        kept = root / "tests/gate_base"
        base = kept.read_text().strip() if kept.is_file() else ""
    scope = Scope(root, changed_files(root, base))
    for line in scope.lines():
        print(line)
    for note in scope.notes(base):
        print("note: " + note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
