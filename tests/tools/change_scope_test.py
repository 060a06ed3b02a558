"""tools/change_scope.py on changes of one file, and on small repositories."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import change_scope  # noqa: E402
import include_closure  # noqa: E402
import layers  # noqa: E402

ONCE_EACH = {"packages", "sources", "release", "voice", "real", "asan"}
EVERY_STAGE = [*change_scope.ORDER]


def scope(*files):
    return change_scope.Scope(ROOT, list(files))


def added(*files):
    """The stages beyond those of every change, without fuzz and tidy, which go by sources."""
    return set(scope(*files).stages()) - ONCE_EACH - {"fuzz", "tidy"}


class Map(unittest.TestCase):
    def test_kernels_add_processors(self):
        self.assertEqual(added("src/kernels/cpu/conv.cc"), {"x86", "arm64"})
        self.assertEqual(scope("src/kernels/cpu/conv.cc").numeric, {"kernels"})
        self.assertEqual(scope("tests/kernels/conv_test.cc").numeric, {"kernels"})

    def test_crew_adds_thread_sanitizer(self):
        self.assertEqual(added("src/nn/linear.cc"), {"x86", "arm64"})
        self.assertEqual(added("src/nn/crew.h"), {"x86", "arm64", "tsan"})
        self.assertEqual(added("tests/nn/crew_test.cc"), {"x86", "arm64", "tsan"})
        self.assertEqual(scope("src/nn/crew.cc").tsan, set(layers.ALL_TSAN))

    def test_model_adds_its_own_tests(self):
        one = scope("src/models/mimi/decoder.cc")
        self.assertEqual(set(one.stages()) - ONCE_EACH - {"fuzz", "tidy"}, {"x86"})
        self.assertEqual(one.numeric, {"models/mimi"})
        self.assertEqual(scope("tests/models/seen_stages.cc").numeric, {"models"})

    def test_text_adds_nothing(self):
        self.assertEqual(added("src/text/unicode.cc"), set())
        self.assertEqual(set(scope("src/text/unicode.cc").stages()) - {"fuzz", "tidy"}, ONCE_EACH)

    def test_server_adds_threads_and_clients(self):
        self.assertEqual(added("src/server/http/http_server.cc"), {"tsan", "clients"})
        self.assertEqual(scope("src/server/http/http_server.cc").tsan, {"server"})
        self.assertEqual(added("tests/server/http_server_test.cc"), {"tsan"})

    def test_engine_adds_thread_sanitizer(self):
        self.assertEqual(added("src/engine/schedule/queue.cc"), {"tsan"})
        self.assertEqual(scope("src/engine/schedule/queue.cc").tsan, {"engine", "server"})

    def test_packaging_adds_clients(self):
        self.assertEqual(added("packaging/scale/haproxy.cfg"), {"clients", "install"})

    def test_base_cmake_scripts_add_everything(self):
        for path in ("src/base/log.cc", "src/base/thread_team.h", "cmake/SyrinxBuild.cmake", "CMakeLists.txt", "CMakePresets.json",
                     "scripts/stages.sh", ".ci/run", "tools/layers.py", "tests/CMakeLists.txt"):
            self.assertEqual(scope(path).stages(), EVERY_STAGE, path)
            self.assertEqual(scope(path).tidied(), ["all"])

    def test_test_of_base_adds_its_own_builds(self):
        self.assertEqual(added("tests/base/log_test.cc"), {"tsan", "x86", "arm64"})

    def test_list_of_a_room_adds_install(self):
        self.assertEqual(added("src/text/CMakeLists.txt"), {"install"})
        self.assertEqual(added("tests/text/CMakeLists.txt"), set())

    def test_pages_need_sources_alone(self):
        self.assertEqual(scope("README.md", "docs/journal.md", "src/models/mimi/README.md").stages(), ["packages", "sources"])
        self.assertEqual(set(scope("docs/server.md").stages()), ONCE_EACH)

    def test_more_files_add_no_less(self):
        files = ["docs/cli.md", "src/text/unicode.cc", "src/models/mimi/decoder.cc", "src/server/service.cc", "cmake/SyrinxBuild.cmake",
                 "src/kernels/conv.h"]
        for count in range(1, len(files)):
            fewer, more = scope(*files[:count]), scope(*files[:count + 1])
            self.assertLessEqual(set(fewer.stages()), set(more.stages()))
            self.assertLessEqual(fewer.numeric, more.numeric)
            self.assertLessEqual(fewer.tsan, more.tsan)

    def test_stages_of_the_map_are_known(self):
        known = {*change_scope.ORDER, "numeric_asan", "tidy_all", "fuzz_all"}
        for path, stages in layers.ADDS.items():
            self.assertLessEqual(set(stages), known, path)

    def test_rooms_go_by_longest_name(self):
        self.assertEqual(layers.longest(["src/nn", "src/nn/crew"], "src/nn/crew_test.cc"), "src/nn/crew")
        self.assertEqual(layers.longest(["src/nn", "src/nn/crew"], "src/nn/crewed.cc"), "src/nn")
        self.assertIsNone(layers.longest(["src/nn"], "src/nnx/a.cc"))


class Fuzz(unittest.TestCase):
    def test_changed_parser_is_fuzzed(self):
        self.assertIn("wav", scope("src/base/result.h").fuzz)
        self.assertEqual(scope("fuzz/corpus/wav/new").fuzz, ["wav"])
        self.assertEqual(scope("fuzz/wav_fuzz.cc").fuzz, ["wav"])
        self.assertEqual(scope("src/kernels/conv.h", "src/cli/main.cc", "tests/base/log_test.cc").fuzz, [])

    def test_closure_holds_sources_behind_headers(self):
        closure = include_closure.sources(ROOT).closure("fuzz/json_fuzz.cc")
        self.assertLessEqual({"src/base/json.h", "src/base/json.cc", "src/base/result.h"}, closure)
        self.assertFalse([file for file in closure if file.startswith("src/server")])

    def test_many_targets_share_the_time(self):
        self.assertEqual(scope("fuzz/wav_fuzz.cc").fuzz_seconds(), change_scope.FUZZ_MOST_S)
        everything = scope("CMakeLists.txt")
        self.assertEqual(len(everything.fuzz), len(list((ROOT / "fuzz").glob("*_fuzz.cc"))))
        self.assertLessEqual(everything.fuzz_seconds() * len(everything.fuzz), change_scope.FUZZ_BUDGET_S)


class Repository(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.git("init", "-q")
        self.write("src/text/split.cc", "int split;\n" * 20)
        self.base = self.commit()

    def git(self, *arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *identity, "-C", str(self.root), *arguments], check=True, capture_output=True, text=True).stdout.strip()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "a")
        return self.git("rev-parse", "HEAD")

    def changed(self, base=None):
        return change_scope.changed_files(self.root, base or self.base)

    def test_moved_file_counts_at_both_ends(self):
        (self.root / "src/kernels").mkdir()
        self.git("mv", "src/text/split.cc", "src/kernels/split.cc")
        self.commit()
        self.assertEqual(self.changed(), ["src/kernels/split.cc", "src/text/split.cc"])

    def test_uncommitted_and_new_files_count(self):
        self.assertEqual(self.changed(), [])
        self.write("src/text/split.cc", "int other;\n")
        self.write("src/nn/new.cc", "int fresh;\n")
        self.assertEqual(self.changed(), ["src/nn/new.cc", "src/text/split.cc"])

    def test_unknown_commit_means_everything(self):
        for base in ("", "0123456789012345678901234567890123456789", "no commit"):
            self.assertIsNone(change_scope.changed_files(self.root, base))
        everything = change_scope.Scope(ROOT, None)
        self.assertEqual(everything.stages(), EVERY_STAGE)
        self.assertLessEqual({"kernels", "nn", "models/mimi"}, everything.numeric)
        self.assertIn("not known", next(everything.notes("")))


if __name__ == "__main__":
    unittest.main()
