"""Recordings of voices that somebody shortens, or writes over, while the program reads them: a sentence, and whoever is served goes on."""
import os
import pathlib
import shutil
import struct
import subprocess
import threading
import time
import unittest

from program import tone, wav
from server import ENGLISH, MODEL, Server

# As long as voices may be, at a rate that takes work to convert: half a second of reading.
RATE, SECONDS = 48000, 470
SHORT, LONG = 5000, 2 * RATE * SECONDS + 5000  # bytes that a file has once somebody has changed it


def long_voice(path):
    """Two seconds of a tone, and silence that takes no room on the disk."""
    head, size = wav(b"", RATE), 2 * RATE * SECONDS
    path.write_bytes(head[:4] + struct.pack("<I", 36 + size) + head[8:40] + struct.pack("<I", size) + tone(2, RATE))
    os.truncate(path, len(head) + size)
    return path


class Changing(Server):
    def setUp(self):
        super().setUp()
        self.folder = self.folder.resolve()  # as the system names what is mapped

    def resize_when_mapped(self, process, path, is_over, size=SHORT):
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        while not is_over():
            try:
                if str(path) in maps.read_text():
                    os.truncate(path, size)
                    return
            except OSError:  # it has ended
                return

    def until_caught(self, attempt, attempts=1000):
        """Whoever is kept from changing it until all has been read tries again."""
        end = time.monotonic() + 120
        for i in range(attempts):
            if attempt(i):
                return
            if time.monotonic() > end:
                break
        self.fail("it was never changed while it was read")


class Reading(Changing):
    def check_cast(self, size, fault):
        def attempt(i):
            path = long_voice(self.folder / f"cast{i}.wav")
            process = self.start("speak", "--model", ENGLISH, "--voice", ENGLISH / "voice.safetensors", "--cast", f"bob={path}",
                                 "--out", "-", "--format", "pcm", "Hello.", stdout=subprocess.DEVNULL)
            self.resize_when_mapped(process, path, lambda: process.poll() is not None, size)
            errors = process.communicate(timeout=500)[1].decode()
            if process.returncode == 0:
                return False
            self.assertEqual(process.returncode, 4, errors)
            self.assertIn(f"'{path}' {fault} while it was read", errors)
            self.assertEqual(errors.count("\n"), 1, errors)
            return True
        self.until_caught(attempt)

    def test_of_a_cast(self):
        self.check_cast(SHORT, "became shorter")

    def test_of_a_cast_that_becomes_longer(self):
        self.check_cast(LONG, "was written")

    def serve_and_cut(self, path, *arguments):
        """The server's status and lines; it is ended once it serves."""
        process = self.start("serve", "--port", "0", *MODEL, *arguments, stdout=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(iter(lambda: process.stderr.readline().decode(), "")), daemon=True)
        reader.start()
        has_loaded = lambda: process.poll() is not None or any("page: " in line for line in lines)
        self.resize_when_mapped(process, path, has_loaded)
        self.wait_for(has_loaded)
        process.terminate()
        status = process.wait(120)
        reader.join()
        process.stderr.close()
        process.stdin.close()
        return status, lines

    def test_of_the_settings(self):
        def attempt(i):
            path = long_voice(self.folder / f"voice{i}.wav")
            status, lines = self.serve_and_cut(path, "--voices", f"cut={path}")
            if status == 0:
                return False
            self.assertEqual(status, 4, lines)
            # The settings are checked before the model is loaded, and the file is opened for each.
            if any("'cut' is cut off" in line for line in lines):
                return False
            self.assertTrue(any(f"'{path}' became shorter while it was read" in line for line in lines), lines)
            return True
        self.until_caught(attempt)

    def test_of_the_shelf(self):
        """The server starts without it."""
        shelf = self.folder / "shelf/english"
        shelf.mkdir(parents=True)

        def attempt(i):
            path = long_voice(shelf / f"me{i}.safetensors")  # whatever it is called, it is a recording
            status, lines = self.serve_and_cut(path, "--voices-dir", shelf.parent)
            self.assertEqual(status, 0, lines)
            path.unlink()
            return any("is left out" in line and "became shorter while it was read" in line for line in lines)
        self.until_caught(attempt)

    def test_of_a_voice_that_is_used_for_the_first_time(self):
        """Nobody but who has asked for it notices."""
        shutil.copytree(ENGLISH, self.folder / "model")
        shutil.copy(ENGLISH.parent / "tokenizer.json", self.folder)
        voices = self.folder / "model/voices"
        voices.mkdir()
        paths = [long_voice(voices / f"me{i}.wav") for i in range(60)]
        self.start_server(model=["--recognition-model", "", "--speech-model", self.folder / "model", "--voices",
                                 f"ann={ENGLISH / 'voice.safetensors'}", "--voice", "ann"])
        expected = self.spoken()

        def attempt(i):
            statuses = []
            asking = threading.Thread(target=lambda: statuses.append(self.speak(voice=paths[i].stem)[0]))
            asking.start()
            self.resize_when_mapped(self.server, paths[i], lambda: not asking.is_alive())
            asking.join()
            self.assertIn(statuses, ([200], [500]), self.lines)
            return statuses == [500]
        self.until_caught(attempt, len(paths))
        self.wait_for(lambda: any("became shorter while it was read" in line for line in self.lines))
        self.check_same(self.spoken(), expected)


if __name__ == "__main__":
    unittest.main()
