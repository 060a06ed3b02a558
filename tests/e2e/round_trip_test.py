"""With the installed models (label `real`): what the built-in voice says, the built-in recogniser hears."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

from program import BINARY, Program

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/judge"))

import words  # noqa: E402


class RoundTrip(Program):
    home = "the user's own"  # models and caches as they are installed

    def test_fifty_sentences(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/judge/round_trip.py", "--syrinx", BINARY, "--bar", "5"],
                              capture_output=True, text=True, env=self.environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"50 sentences, af_heart: \d+ of \d+ words wrong")

    def test_what_quickstart_prints(self):
        """Its two commands, with the text that it speaks by itself."""
        text = re.search(r'^text=\$\{1:-(.*)\}$', (ROOT / "scripts/quickstart").read_text(), re.MULTILINE)[1]
        code, output, errors = self.run_it("speak", text, "--out", "hello.wav", "--json")
        self.assertEqual((code, errors), (0, ""))
        self.assertGreater(json.loads(output)["audio_seconds"], 1)
        code, output, errors = self.run_it("transcribe", self.out / "hello.wav")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(words.normalise(output.decode()), words.normalise(text))


if __name__ == "__main__":
    unittest.main()
