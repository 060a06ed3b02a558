"""`syrinx serve` asked by schemathesis, which makes requests of what /openapi.json says that they may hold, and others."""
import json
import os
import re
import subprocess
import sys
import unittest

from program import DATA, tiny_whisper
from server import MODEL, Server

CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
          "response_schema_conformance", "unsupported_method", "allow_header_conformance", "ignored_auth"]


class OpenApi(Server):
    def test_schemathesis_finds_no_fault(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        self.start_server("--api-key-file", keys, "--max-text-characters", "100", "--recognition-model",
                          tiny_whisper(self.folder / "tiny"), "--chat-model", DATA / "llama/chat_smollm/chat_smollm.gguf",
                          model=MODEL[2:])
        paths = json.loads(self.request("GET", "/openapi.json")[2])["paths"]
        operations = sum(len(each) for path, each in paths.items() if path != "/openapi.json")  # which it has read already
        made = asked = 0
        for seconds in (20, 200, 1000):  # a busy machine makes few requests in a while
            if made <= 20 or asked < operations:
                made, asked = self.cases_in(seconds)
        self.assertGreater(made, 20)
        self.assertEqual(asked, operations)
        self.wait_for(lambda: self.free_slots() == 4)
        self.assertTrue(self.request("POST", "/v1/audio/speech", {"input": "Still here."}, {"Authorization": "Bearer secret"})[2])

    def cases_in(self, seconds):
        """How many requests were made in that time, all of which must have passed, and of how many operations."""
        report = self.folder / "report.json"
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", f"http://{self.host}:{self.port}/openapi.json",
             "--header", "Authorization: Bearer secret", "--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing", "--request-timeout", "120",
             "--max-examples", "20", "--max-time", str(seconds), "--suppress-health-check", "too_slow", "--seed", "1", "--no-shrink",
             "--generation-database", "none", "--report-json-path", report],
            cwd=self.folder, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, check=False, timeout=seconds + 500)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        cases = re.search(r"(\d+) generated, (\d+) passed", done.stdout)  # warnings about its own guesses stand beside them
        if cases is None:
            self.assertIn("No test cases were generated", done.stdout)
            return 0, 0
        self.assertEqual(cases[1], cases[2], done.stdout)
        return int(cases[1]), json.loads(report.read_text())["operations"]["tested"]


if __name__ == "__main__":
    unittest.main()
