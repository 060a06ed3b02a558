"""The load generator and the soak of bench/load against a server with the small random checkpoint: half a minute."""
import asyncio
import csv
import json
import os
import pathlib
import subprocess
import sys
import unittest

from program import BINARY, DATA, Program

LOAD = pathlib.Path(__file__).resolve().parents[2] / "bench/load"
ENGLISH = DATA / "pocket_tts/english"
SERVER = ["--syrinx", BINARY, "--model", ENGLISH, "--voice", ENGLISH / "voice.safetensors"]


sys.path.append(str(LOAD))
import listener  # noqa: E402


class Listener(unittest.TestCase):
    def hear(self, pauses, last=b"0\r\n\r\n"):
        """A server that waits so long before each frame of 80 ms."""

        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for pause in pauses:
                await asyncio.sleep(pause)
                writer.write(b"%x\r\n" % listener.FRAME_BYTES + bytes(listener.FRAME_BYTES) + b"\r\n")
                await writer.drain()
            writer.write(last)
            writer.close()

        async def both():
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            async with server:
                return await listener.listen(listener.Target("127.0.0.1", server.sockets[0].getsockname()[1]), "Hello.", "a", 0)

        return asyncio.run(both())

    def test_what_comes_in_time_is_no_miss(self):
        heard = self.hear([0.05, 0, 0, 0.01])
        self.assertEqual((heard.status, heard.misses, len(heard.gaps)), (200, 0, 3))
        self.assertGreaterEqual(heard.first, 0.05)
        self.assertAlmostEqual(heard.sound, 0.32)

    def test_what_comes_late_is_a_miss_and_is_played_from_then_on(self):
        heard = self.hear([0, 0.3, 0, 0.4, 0])
        self.assertEqual((heard.status, heard.misses), (200, 2))  # 0.08 s are there for 0.3 s, then 0.16 s for 0.4 s
        self.assertGreater(heard.late, 0.2)
        self.assertGreaterEqual(max(heard.gaps), 0.4)

    def test_an_answer_that_is_broken_off_fails(self):
        self.assertEqual(self.hear([0, 0], last=b"").status, 0)


class Load(Program):
    def run_script(self, name, *arguments):
        return subprocess.run([sys.executable, "-B", LOAD / name, *map(str, arguments)], capture_output=True, text=True, cwd=self.out,
                              env={**os.environ, **self.environment()}, check=False, timeout=240)

    def test_a_soak_leaves_nothing_behind(self):
        samples = self.folder / "samples.csv"
        done = self.run_script("soak.py", "--seconds", "24", "--streams", "20", "--csv", samples, *SERVER)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with samples.open() as file:
            self.assertGreaterEqual(len(list(csv.DictReader(file))), 8)

    def test_a_soak_fails_where_memory_grows(self):
        done = self.run_script("soak.py", "--seconds", "2", "--allow-mb", "-1000", *SERVER)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("error: the memory has grown by", done.stdout)

    def test_the_load_generator_counts_and_reports(self):
        rows = self.folder / "load.json"
        done = self.run_script("load.py", "capacity", "--high", "3", "--low", "1", "--seconds", "1", "--json", rows, *SERVER)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for row in json.loads(rows.read_text())["rows"]:
            self.assertEqual(row["failed"], 0, row)
            self.assertGreaterEqual(row["texts"], row["streams"])
            self.assertGreater(row["sound_s"], 0)
            self.assertLess(0, row["above_engine_ms"]["min"])
            self.assertLessEqual(row["above_engine_ms"]["max"], row["first_ms"]["max"])
            self.assertLessEqual(row["first_ms"]["p50"], row["first_ms"]["p99"])
        done = self.run_script("load.py", "report", "--json", rows, "--csv", self.folder / "load.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| syrinx | 2 |", done.stdout)


if __name__ == "__main__":
    unittest.main()
