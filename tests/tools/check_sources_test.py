"""tools/check_sources on small trees: which lines of a model it refuses."""

import pathlib
import subprocess
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_sources"


class CheckSources(unittest.TestCase):
    def faults(self, line, path="src/models/m/model.cc"):
        """What the check prints of a tree with this line in a file."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / path).parent.mkdir(parents=True)
            (root / path).write_text(line + "\n")
            subprocess.run(["git", "-C", root, "init", "-q"], check=True)
            subprocess.run(["git", "-C", root, "add", "-A"], check=True)
            run = subprocess.run([CHECK, root], stdout=subprocess.PIPE, text=True)
            self.assertEqual(run.returncode != 0, bool(run.stdout))
            return run.stdout

    def test_team_of_model_is_refused(self):
        for line in ("ThreadTeam team(4);", "  ThreadTeam team_;", "ThreadTeam team{1};", "auto team = ThreadTeam(2);",
                     "const auto t = std::make_unique<ThreadTeam>(2);", "ThreadTeam team = make();", "std::optional<ThreadTeam> team_;"):
            self.assertIn("it is handed in", self.faults(line), line)

    def test_team_handed_in_is_allowed(self):
        for line in ("void load(ThreadTeam& team);", "ThreadTeam* team = nullptr;", "// ThreadTeam team(4);",
                     "explicit Model(ThreadTeam& team) : team_(team) {}"):
            self.assertEqual(self.faults(line), "", line)

    def test_team_of_engine_is_allowed(self):
        self.assertEqual(self.faults("ThreadTeam packers(4);", "src/engine/a.cc"), "")

    def test_lock_of_model_is_refused(self):
        self.assertIn("a lock, thread or clock", self.faults("std::mutex mutex_;"))


if __name__ == "__main__":
    unittest.main()
