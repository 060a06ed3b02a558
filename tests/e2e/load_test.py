"""The load generator and the soak of bench/load against a server with the small random checkpoint: two minutes."""
import asyncio
import csv
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import types
import unittest
from unittest import mock

from program import BINARY, DATA, Program, tone, wav

LOAD = pathlib.Path(__file__).resolve().parents[2] / "bench/load"
ENGLISH = DATA / "pocket_tts/english"
SERVER = ["--syrinx", BINARY, "--model", ENGLISH, "--voice", ENGLISH / "voice.safetensors"]


sys.path.append(str(LOAD))
import listener  # noqa: E402
import live  # noqa: E402
import load  # noqa: E402
import soak  # noqa: E402
import speaker  # noqa: E402


class Listener(unittest.TestCase):
    def hear(self, pauses, last=b"0\r\n\r\n", silent_from=0.0, frame=bytes(listener.FRAME_BYTES)):
        """A server that waits so long before each frame of 80 ms, by a clock of the test's own: no pause of the machine counts."""
        clock, taken = types.SimpleNamespace(now=100.0), asyncio.Queue()

        class Player(listener._Player):
            def take(self, data):
                super().take(data)
                taken.put_nowait(len(data))

        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for pause in pauses:
                clock.now += pause
                writer.write(b"%x\r\n" % len(frame) + frame + b"\r\n")
                self.assertEqual(await taken.get(), listener.FRAME_BYTES)
            writer.write(last)
            writer.close()

        async def both():
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            async with server:
                return await listener.listen(listener.Target("127.0.0.1", server.sockets[0].getsockname()[1]), "Hello.", "a", 0, silent_from)

        with mock.patch.object(listener, "time", types.SimpleNamespace(monotonic=lambda: clock.now)), \
                mock.patch.object(listener, "_Player", Player):
            return asyncio.run(both())

    def test_what_comes_in_time_is_no_miss(self):
        heard = self.hear([0.05, 0, 0, 0.01])
        self.assertEqual((heard.status, heard.misses, len(heard.gaps)), (200, 0, 3))
        self.assertAlmostEqual(heard.first, 0.05)
        self.assertAlmostEqual(heard.sound, 0.32)

    def test_what_comes_late_is_a_miss_and_is_played_from_then_on(self):
        heard = self.hear([0, 0.3, 0, 0.4, 0])
        self.assertEqual((heard.status, heard.misses), (200, 2))  # 0.08 s are there for 0.3 s, then 0.16 s for 0.4 s
        self.assertAlmostEqual(heard.late, 0.24)
        self.assertAlmostEqual(max(heard.gaps), 0.4)

    def test_a_text_that_was_asked_for_ahead_follows_the_last_one(self):
        heard = self.hear([0.05, 0, 0.2, 0], silent_from=100.1)  # 0.25 s behind the question it plays from 100.1 to 100.26
        self.assertEqual((heard.status, heard.misses), (200, 0))
        self.assertAlmostEqual(heard.first, 0.05)
        self.assertAlmostEqual(heard.play_end, 100.1 + 0.32)
        heard = self.hear([0.15, 0], silent_from=100.1)
        self.assertEqual((heard.status, heard.misses), (200, 1))
        self.assertAlmostEqual(heard.late, 0.05)
        self.assertAlmostEqual(heard.play_end, 100.15 + 0.16)

    def test_who_asks_ahead_asks_while_it_listens(self):
        asked = []

        async def listen(_target, _text, name, _seed, silent_from=0.0):
            asked.append((clock.now, silent_from))
            return listener.Heard(name, status=200, sound=2.0, play_end=(silent_from or clock.now) + 2.0)

        async def sleep(seconds):
            clock.now += seconds

        for ahead, expected in ((0.0, [(0, 0), (2, 0), (4, 0)]), (1.5, [(0, 0), (0.5, 2), (2.5, 4), (4.5, 6)])):
            clock, asked[:] = types.SimpleNamespace(now=0.0), []
            with mock.patch.object(listener, "time", types.SimpleNamespace(monotonic=lambda clock=clock: clock.now, time_ns=lambda: 1)), \
                    mock.patch.object(listener.asyncio, "sleep", sleep), mock.patch.object(listener, "listen", listen):
                asyncio.run(listener.listeners(None, "Hello.", 1, 3.0, 2.0, ahead))
            self.assertEqual(asked, expected)

    def test_other_samples_have_another_digest(self):
        one = self.hear([0, 0]).digest
        self.assertEqual(self.hear([0.1, 0.3]).digest, one)
        self.assertNotEqual(self.hear([0, 0], frame=bytes(listener.FRAME_BYTES - 1) + b"\1").digest, one)
        self.assertNotEqual(self.hear([0, 0, 0]).digest, one)

    def test_seeds_come_in_turn(self):
        seeds = []

        async def listen(_target, _text, name, seed, _silent_from=0.0):
            seeds.append(seed)
            return listener.Heard(name, seed, status=200, sound=1.0, play_end=clock.now + 1.0)

        async def sleep(seconds):
            clock.now += seconds

        for wanted, expected in ((0, [0, 1, 2, 3, 4]), (2, [0, 1, 0, 1, 0])):
            clock, seeds[:] = types.SimpleNamespace(now=0.0), []
            ours = types.SimpleNamespace(monotonic=lambda clock=clock: clock.now, time_ns=lambda: 1)
            with mock.patch.object(listener, "time", ours), mock.patch.object(listener.asyncio, "sleep", sleep), \
                    mock.patch.object(listener, "listen", listen):
                asyncio.run(listener.listeners(None, "Hello.", 1, 5.0, 0.0, seeds=wanted))
            self.assertEqual(seeds, expected)

    def test_an_answer_that_is_broken_off_fails(self):
        self.assertEqual(self.hear([0, 0], last=b"").status, 0)


class Microphone(Program):
    def test_a_clip_is_said_at_the_pace_of_speech_and_whole(self):
        path = self.folder / "clip.wav"
        path.write_bytes(wav(tone(0.35)))
        clip, said = live.Clip.read(str(path)), []

        async def say():
            begun = time.monotonic()
            async for piece in clip.pieces():
                said.append((time.monotonic() - begun, len(piece) / 2 / 16000))

        asyncio.run(say())
        self.assertEqual(len(said), 4)
        passed = 0.0
        for moment, seconds in said:
            passed += seconds
            self.assertGreaterEqual(moment, passed - 1e-3)  # no piece before its last sample
        self.assertAlmostEqual(passed, clip.seconds)

    def test_a_clip_at_another_rate_lasts_as_long(self):
        ramp = live.Clip("", 16000, b"".join((100 * i).to_bytes(2, "little", signed=True) for i in range(-160, 160)))
        self.assertIs(ramp.at(16000), ramp)
        self.assertEqual(ramp.at(24000).seconds, ramp.seconds)
        samples = memoryview(ramp.at(24000).pcm).cast("h")
        self.assertEqual(list(samples[:4]), [-16000, -15934, -15867, -15800])
        self.assertEqual(samples[-1], 15900)


class Judging(unittest.TestCase):
    """What the soak finds, and what the report draws, of figures that are given."""

    def differences(self, digest="a", words="one two", behind=None):
        before = soak.Alone({0: "a"}, {"decode": "one two"})
        heard = [listener.Heard("x", 0, status=200, sound=1.0, digest=each) for each in ("a", digest)]
        said = [speaker.Said("decode", 200, 0.1, words), speaker.Said("decode", 503, 0.1, "", "busy")]
        return soak.differences(soak.Load([], heard, said), before, behind or before)

    def test_other_samples_and_words_are_found(self):
        self.assertEqual(self.differences(), [])
        self.assertEqual(self.differences(digest="b"), ["1 of 2 texts have other samples under load than before"])
        self.assertEqual(self.differences(words="one"),
                         ["1 of 1 clips have other words over decode: 'one', not 'one two'"])
        self.assertEqual(len(self.differences(behind=soak.Alone({0: "b"}, {"decode": "one"}))), 2)

    def test_a_sweep_goes_from_one_client_to_the_capacity(self):
        self.assertEqual(load.sweep_counts(20), [1, 5, 10, 16, 20])
        self.assertEqual(load.sweep_counts(1), [1])

    def test_a_chart_is_drawn_on_one_scale(self):
        def row(server, streams, *milliseconds, misses=0):
            first = dict(zip(("p50", "p95", "p99"), milliseconds))
            return {"server": server, "streams": streams, "texts": 3, "failed": 0, "misses": misses, "first_ms": first}

        drawn = load.chart([row("a", 8, 100, 200, 1000, misses=2), row("a", 1, 10, 31.6228, 100),
                            row("b", 1, 20, 20, 20), row("b", 2)], 40)
        self.assertEqual(drawn[1:9], [
            "a: first sound, or words behind the sound, ms",
            " clients     |10                 |100                |1000",
            "       1 p50 | 10.0",
            "         p95 |" + 10 * "#" + " 31.6",
            "         p99 |" + 20 * "#" + " 100.0",
            "       8 p50 |" + 20 * "#" + " 100.0",
            "         p95 |" + 26 * "#" + " 200.0",
            "         p99 |" + 40 * "#" + " 1000.0, 2 misses, 0 failed"])
        self.assertEqual(drawn[-3:], [f"{count} {p} |###### 20.0" for count, p in
                                      (("       1", "p50"), ("        ", "p95"), ("        ", "p99"))])
        self.assertEqual(load.chart([row("b", 2)]), [])


class Load(Program):
    def run_script(self, name, *arguments):
        return subprocess.run([sys.executable, "-B", LOAD / name, *map(str, arguments)], capture_output=True, text=True, cwd=self.out,
                              env={**os.environ, **self.environment()}, check=False, timeout=1200)

    def test_a_soak_leaves_nothing_behind(self):
        samples, clip = self.folder / "samples.csv", self.folder / "clip.wav"
        clip.write_bytes(wav(tone(1.0)))
        done = self.run_script("soak.py", "--seconds", "120", "--streams", "20", "--speakers", "4", "--clip", clip,
                               "--recognition-model", DATA / "transducer/rnnt.nemo", "--csv", samples, *SERVER)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"; [1-9]\d* clips; [1-9]\d* stalled readers were cut;")
        with samples.open() as file:
            self.assertGreaterEqual(len(list(csv.DictReader(file))), 8)

    def test_a_soak_fails_where_memory_grows(self):
        done = self.run_script("soak.py", "--seconds", "2", "--allow-mb", "-1000", *SERVER)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("error: the memory has grown by", done.stdout)

    def rows(self, *arguments):
        rows = self.folder / "rows.json"
        rows.unlink(missing_ok=True)
        done = self.run_script("load.py", "run", "--seconds", "0.5", "--streams", "2", "--json", rows, "--syrinx", BINARY, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(rows.read_text())["rows"], done.stdout

    def test_it_listens_over_every_protocol(self):
        for protocol in ("realtime", "wyoming"):
            (row,), _ = self.rows(*SERVER[2:], "--protocol", protocol)
            self.assertEqual((row["failed"], row["server"]), (0, f"syrinx {protocol}"))
            self.assertGreaterEqual(row["texts"], 2)
            self.assertAlmostEqual(row["sound_s"], row["texts"] * row["about"]["text_sound_s"])  # seeds of its own for none

    def test_it_speaks_over_every_protocol(self):
        words = set()
        for protocol in ("transcriptions", "realtime", "wyoming", "decode", "batch"):
            rate = 24000 if protocol == "realtime" else 16000
            clip = self.folder / f"{rate}.wav"
            clip.write_bytes(wav(tone(1.0, rate), rate))
            (row,), told = self.rows("--model", DATA / "transducer/rnnt.nemo", "--clip", clip, "--protocol", protocol)
            self.assertEqual((row["failed"], row["server"]), (0, f"syrinx {protocol}"), told)
            self.assertGreaterEqual(row["texts"], 2)
            self.assertGreater(row["first_ms"]["min"], 0)
            if rate == 16000:
                words.add(told.partition("heard: ")[2].partition("\n")[0])
        self.assertEqual(len(words), 1, words)  # whole or in pieces

    def test_words_that_come_late_are_a_miss(self):
        clip = self.folder / "clip.wav"
        clip.write_bytes(wav(tone(0.5)))
        (row,), _ = self.rows("--model", DATA / "transducer/rnnt.nemo", "--clip", clip, "--protocol", "wyoming", "--deadline", "0")
        self.assertEqual((row["failed"], row["misses"]), (0, row["texts"]))

    def test_a_clip_that_nobody_hears_is_told(self):
        clip = self.folder / "clip.wav"
        for protocol, rate, words in (("realtime", 16000, "must have a 'rate' of 24000"),
                                      ("decode", 24000, "has 24000 Hz, /v2/decode takes 16000"),
                                      ("batch", 24000, "has 24000 Hz, /v2/decode takes 16000")):
            clip.write_bytes(wav(tone(0.5, rate), rate))
            done = self.run_script("load.py", "run", "--json", self.folder / "rows.json", "--syrinx", BINARY,
                                   "--model", DATA / "transducer/rnnt.nemo", "--clip", clip, "--protocol", protocol)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)

    def test_a_server_has_the_slots_and_cpus_that_are_asked_for(self):
        here = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, here)
        cpus = f"{min(here)}-{min(here)}"
        self.assertEqual(load.cpu_set("0,2-4"), {0, 2, 3, 4})
        server = load.Syrinx(BINARY, ["--recognition-model", "", *load.syrinx_arguments(types.SimpleNamespace(
            model=str(ENGLISH), voice=ENGLISH / "voice.safetensors", slots=3, threads=1, precision=""))], cpus=cpus)
        try:
            self.assertEqual(os.sched_getaffinity(server.process.pid), {min(here)})
            self.assertEqual(os.sched_getaffinity(0), here - {min(here)} or here)
            connection = http.client.HTTPConnection("127.0.0.1", server.target.port, timeout=120)
            self.addCleanup(connection.close)
            connection.request("GET", "/metrics")
            self.assertRegex(connection.getresponse().read().decode(), r'syrinx_slots\{[^}]*state="free"\} 3\n')
        finally:
            server.close()

    def test_who_listens_alone_waits_for_no_round_of_others(self):
        """The engine takes a step for a text of one piece, one for each of its frames of 80 ms, and one in which it ends."""
        server = load.Syrinx(BINARY, ["--recognition-model", "", *load.syrinx_arguments(types.SimpleNamespace(
            model=str(ENGLISH), voice=ENGLISH / "voice.safetensors", slots=3, threads=1, precision="f32"))])
        self.addCleanup(server.close)  # f32: in int8 it is the processor that says how long a text of random weights is

        def steps():
            connection = http.client.HTTPConnection("127.0.0.1", server.target.port, timeout=120)
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
            connection.close()
            return int(re.search(r"^syrinx_step_duration_seconds_count\{[^}]*\} (\d+)$", page, re.M)[1])

        for text in ("Hello there.", load.TEXT):
            before = steps()
            name = f"alone.{len(text)}"
            heard = asyncio.run(listener.listen(server.target, text, name, 0))
            self.wait_for(lambda name=name: name in server.log)
            frames = round(heard.sound * 24000 * 2 / listener.FRAME_BYTES)
            self.assertGreater(frames, 5)
            self.wait_for(lambda before=before, frames=frames: steps() - before > frames + 1)  # the log need not be behind the count
            self.assertEqual(steps() - before, frames + 2)

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
            for rank, milliseconds in row["above_engine_ms"].items():  # the server's part ends before the listener hears
                self.assertLessEqual(row["of_it_in_server_ms"][rank], milliseconds + 0.002, rank)  # the log has 0.001 ms
            self.assertGreaterEqual(row["of_it_in_server_ms"]["min"], 0)
        self.check_sweep(rows)
        done = self.run_script("load.py", "report", "--json", rows, "--csv", self.folder / "load.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| syrinx | 2 |", done.stdout)
        self.assertRegex(done.stdout, r"\n       4 p50 \|#* \d+\.\d\n")
        drawn = sorted(json.loads(rows.read_text())["rows"], key=lambda row: (row["server"], row["streams"]))
        self.assertIn("\n".join(load.chart(drawn)), done.stdout)

    def check_sweep(self, rows):
        """Behind `capacity` that has found 1 or 2, and so has measured all counts of its own sweep, 1 among them."""
        def counts():
            return sorted(row["streams"] for row in json.loads(rows.read_text())["rows"])

        known = counts()
        sweep = ["sweep", "--seconds", "1", "--json", rows, *SERVER]
        done = self.run_script("load.py", *sweep)
        self.assertEqual((done.returncode, counts()), (0, known), done.stdout + done.stderr)
        done = self.run_script("load.py", *sweep, "--high", "4")
        self.assertEqual((done.returncode, counts()), (0, sorted([*known, *({1, 2, 3, 4} - {*known})])),
                         done.stdout + done.stderr)
        done = self.run_script("load.py", *sweep, "--slots", "63")
        self.assertIn("tells no capacity of this server with these settings", done.stderr)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
