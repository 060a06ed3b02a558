"""tools/check_families on small trees: which places it refuses."""

import pathlib
import subprocess
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_families"


class CheckFamilies(unittest.TestCase):
    def faults(self, path, text, table="SPEECH_FAMILY(hum_along)\n"):
        """Lines that the check prints of a tree with that table and a file with that text."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, content in {"src/engine/families/families.def": table, path: text}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            run = subprocess.run([CHECK, root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            return run.stdout.splitlines()[:-1] or run.stdout.splitlines()

    def test_name_of_table_is_refused_outside(self):
        for text in ('call("hum-along");', "HumEngine engine;", "const int kHum = 1;", "HUM_LIMIT", "load(hum)"):
            self.assertEqual(self.faults("src/server/a.cc", text + "\n"), [f"src/server/a.cc:1: {text}"])

    def test_name_within_word_is_allowed(self):
        self.assertEqual(self.faults("src/server/a.cc", "human(thumb, chuM);\n"), [])

    def test_comment_is_allowed(self):
        self.assertEqual(self.faults("src/server/a.cc", "// as hum does\n"), [])

    def test_folders_of_family_are_allowed(self):
        for path in ("src/models/hum/a.cc", "src/engine/families/hum/a.cc"):
            self.assertEqual(self.faults(path, "hum();\n"), [])

    def test_folder_with_digit_is_allowed(self):
        self.assertEqual(self.faults("src/engine/families/hum2_along/a.cc", "Hum2Engine engine;\n", "SPEECH_FAMILY(hum2_along)\n"), [])

    def test_indented_line_of_table_counts(self):
        self.assertEqual(self.faults("src/server/a.cc", "hum();\n", "  SPEECH_FAMILY(hum)\n"), ["src/server/a.cc:1: hum();"])

    def test_table_without_line_fails(self):
        self.assertIn("no line of a family", self.faults("src/server/a.cc", "hum();\n", "\n")[0])


if __name__ == "__main__":
    unittest.main()
