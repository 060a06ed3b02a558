"""The rooms of src/: which may include which, where the tests of each run, and what a change adds to scripts/test.

One table for tools/check_layers, tools/change_scope.py and cmake/SyrinxBuild.cmake.  A path belongs to the room with the
longest name that begins it.  The folder of tests/ with the name of a room holds the tests of that room.
"""

import pathlib

# What each folder may include besides itself.  A folder outside src/ stands under its path.
LAYERS = {
    "base": set(),
    "tensor": {"base"},
    "kernels": {"base", "tensor"},
    "store": {"base"},
    "audio": {"base", "kernels"},
    "text": {"base", "kernels"},
    "nn": {"base", "tensor", "kernels"},
    "models": {"base", "tensor", "kernels", "nn", "audio", "text"},
    "engine": {"base", "tensor", "kernels", "store", "nn", "audio", "text", "models"},
    "capi": {"base", "tensor", "store", "audio", "engine", "syrinx"},
    "server": {"base", "tensor", "kernels", "store", "nn", "audio", "text", "models", "engine"},
    "cli": {"base", "tensor", "kernels", "store", "nn", "audio", "text", "models", "engine", "capi", "server", "syrinx"},
    "bench/suite": {"base", "tensor", "kernels", "store", "nn", "audio", "text", "models", "engine", "cli"},
    "main": {"base", "kernels", "cli", "bench/suite"},  # src/main.cc, the program
    "syrinx": set(),  # include/syrinx, the installed headers
}

# The rooms of a layer, from the lowest floor to the highest.  A room may include those of lower floors; "" is the
# folder itself, NAME/* each folder in NAME.
ROOMS = {
    "audio": [[""], ["guards"], ["child"], ["sandbox"], ["decode", "encode", "device"]],
    "text": [[""], ["chat", "speech", "tokens"]],
    "engine": [["", "schedule"], ["speech", "recognition", "chat"], ["families/*"], ["families"]],
    "server": [["http"], ["settings"], ["host"], ["openai", "realtime", "decode", "wyoming"], ["upstream"], [""]],
}

# Rooms of numbers: their tests run in the release build.  The tests of all other rooms run under the sanitizers, and so do
# those that CMake declares with `KIND memory`: the parsers of models.
NUMERIC = ("kernels", "nn", "models", "bench")

# Path -> the stages that a change of it adds to what every change must pass, by the longest name that begins the path; a
# path of tests/ counts as the one of src/.  Words that are no stage: `numeric_asan`, the tests of that room of numbers under the
# sanitizers too; `tidy_all` and `fuzz_all`, every source and target instead of the changed ones.
EVERYTHING = ("tsan", "clients", "x86", "arm64", "install", "tidy_all", "fuzz_all")
ADDS = {
    "src/base": EVERYTHING,
    "src/tensor": ("arm64",),
    "src/kernels": ("numeric_asan", "x86", "arm64"),
    "src/nn": ("numeric_asan", "x86", "arm64"),
    "src/nn/crew": ("numeric_asan", "x86", "arm64", "tsan"),
    "src/models": ("numeric_asan", "x86"),  # nothing of a model is compiled for ARM
    "src/models/pocket_tts/chunk_speaker": ("numeric_asan", "x86", "tsan"),
    "src/engine": ("tsan",),  # streams, sessions, queues
    "src/capi": ("install",),
    "src/server": ("tsan", "clients"),
    "include": ("install",),
    "examples": ("install",),
    "packaging": ("clients", "install"),
    "tests/e2e": ("clients",),
    "cmake": EVERYTHING,
    "CMakeLists.txt": EVERYTHING,
    "CMakePresets.json": EVERYTHING,
    "tests/CMakeLists.txt": EVERYTHING,
    "scripts": EVERYTHING,
    ".ci": EVERYTHING,
    "tools/layers.py": EVERYTHING,
    "tools/change_scope.py": EVERYTHING,
    "tools/check_install": ("install",),
    "tools/tidy": ("tidy_all",),
    "tools/source_groups.py": ("tidy_all",),
    ".clang-tidy": ("tidy_all",),
    "tools/fuzz": ("fuzz_all",),
    "fuzz/CMakeLists.txt": ("fuzz_all",),
}

# What no build and no test reads, so that a change of it needs the checks of the sources alone.
UNREAD = ("docs", "LICENSE", ".gitignore", "tests/gate_base", "bench/race", "tools/reference", "tools/convert", "tools/checkpoints",
          "tools/requirements.txt", "fuzz/campaign.json")
UNREAD_SUFFIX = ".md"
READ = ("docs/server.md", "docs/threat_model.md", "docs/third_party.md")  # by tests, or compiled in

# What no fuzz target reaches, though sources that it is made of name its headers.
UNFUZZED = ("src/kernels", "src/nn")

# Which tests run under the thread sanitizer for a change of a room; of any other path that adds `tsan`: all of them.
ALL_TSAN = ("base", "nn", "models", "engine", "server")
TSAN = {"src/server": ("server",), "src/engine": ("engine", "server")}


def begins(name, path):
    """Whether `name` is the path, a folder that it lies in, or the beginning of its last word: nn/crew of nn/crew_test.cc."""
    return path.startswith(name) and path[len(name):len(name) + 1] in ("", "/", ".", "_")


def longest(names, path):
    """The longest of the names that begins the path, or None."""
    return max((name for name in names if begins(name, path)), key=len, default=None)


def is_part(root, model):
    """Whether a folder of src/models is a part of models, such as a codec: it has no folder in engine/families."""
    return not (root / "src/engine/families" / model).is_dir()


def layer_of(path):
    """The layer that a path or the name of an include lies in; None: none that is known."""
    parts = pathlib.PurePosixPath(path).parts
    if "/".join(parts[:2]) in LAYERS:
        return "/".join(parts[:2])
    first = parts[0] if len(parts) > 1 else pathlib.PurePosixPath(parts[0]).stem
    return first if first in LAYERS else None
