"""The judges of the English front end (tools/judge), with a small lexicon."""
import json
import pathlib
import subprocess
import sys
import unittest

from program import BINARY, DATA, Program

ROOT = pathlib.Path(__file__).resolve().parents[2]


class EnglishJudges(Program):
    def setUp(self):
        super().setUp()
        lexicon = self.folder / "home/data/models/english-g2p"
        lexicon.mkdir(parents=True)
        (lexicon / "us_gold.json").write_bytes((DATA / "g2p/tiny_gold.json").read_bytes())

    def judge(self, name, *arguments):
        command = [sys.executable, "-B", ROOT / "tools/judge" / name, *arguments, "--syrinx", BINARY]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment(), cwd=self.folder, check=False)

    def test_judge_of_texts(self):
        cases = self.folder / "cases.tsv"
        cases.write_text("input\texpected\tkind\talso\nTV is 2!\tT V is two\tspelled\t\nThe cat\\nThe dog.\tthe cat the dog\t"
                         "lines\t\nThe boy was read to.\tthe boy was red to\tsound\t\nThe wind.\tthe breeze\tword\tthe gust | the wind\n"
                         "A cat's.\tthe cats\tword\t\n")
        done = self.judge("english_text.py", cases, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        misses = [miss["input"] for miss in result["misses"]]
        self.assertEqual(misses, ["A cat's."])
        self.assertEqual((result["right"], result["of"]), (4, 5))
        self.assertEqual(result["kinds"]["lines"], [1, 1])
        done = self.judge("english_text.py", cases, "--bar", "99")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("expected  the cats\n    said      a cat's\n", done.stdout)

    def test_judge_of_british_texts(self):
        (self.folder / "home/data/models/english-g2p/gb_gold.json").write_bytes((DATA / "g2p/tiny_gold.json").read_bytes())
        cases = self.folder / "cases.tsv"
        # The small lexicon cannot say "hundred".
        cases.write_text("input\texpected\tkind\n102 cats.\tone and two cats\tbritish: number\n102 cats.\tone two cats\tnumber\n")
        done = self.judge("english_text.py", cases, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["misses"], [])

    def test_judge_of_homographs(self):
        header = "homograph\twordid\tsentence\tstart\tend\n"
        noun, verb = "wind\tair\tÉ. The wind is.\t8\t12\n", "wind\tturn\tThey wind.\t5\t9\n"
        (self.folder / "train.tsv").write_text(header + 2 * noun + verb)
        (self.folder / "eval.tsv").write_text(header + noun + verb + "wind\tair\tThey wind.\t5\t9\n")
        done = self.judge("homographs.py", self.folder, "--bar", "60")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 of 3 right = 66.7 %; commonest reading 66.7 %\nworst: wind 1/3\n", done.stdout)
        self.assertEqual(self.judge("homographs.py", self.folder, "--bar", "70").returncode, 1)

    def test_judge_of_marked_homographs(self):
        (self.folder / "train.tsv").write_text("homograph\twordid\tsentence\tstart\tend\nwind\twind_nou\tThe wind is.\t4\t8\n")
        marked = self.folder / "marked.tsv"
        marked.write_text('homograph\twordid\tsentence\nwind\twind_nou\tA "cat"; the [wind] is.\nwind\twind_vrb\tThe [wind] is.\n')
        done = self.judge("homographs.py", self.folder, "--marked", marked)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 of 2 right = 50.0 %", done.stdout)
        marked.write_text("homograph\twordid\tsentence\nwind\twind_nou\tThe wind.\n")
        done = self.judge("homographs.py", self.folder, "--marked", marked)
        self.assertIn("without [brackets]: The wind.", done.stderr)


if __name__ == "__main__":
    unittest.main()
