"""Ten hours of sound (one under sanitizers, which are ten times slower), nearly all of it silence: memory does not grow with it,
and late words have their times."""
import array
import json
import os
import random
import resource
import struct
import unittest

from program import DATA, Program, wav

RATE = 16000
SANITISED = os.environ.get("SYRINX_SANITIZE", "") != ""
HOURS = 1 if SANITISED else 10
SOUND_S = 3
BEGINS_S = (0, 1200 * HOURS + 7, 3600 * HOURS - 1795)
MOST_KIB = (1000 if SANITISED else 400) << 10  # of the process; the recording has 1.15 GB


def noise():
    rng = random.Random(7)
    return array.array("h", (int(rng.gauss(0, 3000)) for _ in range(SOUND_S * RATE))).tobytes()


class TenHours(Program):
    def words(self, path):
        code, output, errors = self.run_it("transcribe", "--threads", "2", "--model", DATA / "transducer/conformer_ctc.nemo", path,
                                           "--precision", "f32", "--timestamps", "word", "--format", "json", timeout=1500)
        self.assertEqual((code, errors), (0, ""))
        answer = json.loads(output)
        return answer["audio_seconds"], [segment for segment in answer["segments"] if segment["words"]]

    def test_the_last_words(self):
        sound, path = noise(), self.folder / "long.wav"
        with open(path, "wb") as file:  # sparse
            size = HOURS * 3600 * RATE * 2
            header = bytearray(wav(b""))
            header[4:8], header[40:44] = struct.pack("<I", 36 + size), struct.pack("<I", size)
            file.write(header)
            for begin in BEGINS_S:
                file.seek(len(header) + begin * RATE * 2)
                file.write(sound)
            file.truncate(len(header) + size)
        seconds, segments = self.words(path)
        self.assertEqual(seconds, HOURS * 3600)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, MOST_KIB)
        last = segments[-1]
        self.assertLess(abs(last["start_s"] - BEGINS_S[-1]), 90)
        # The same sound as a recording of its own, with the silence that the long one was cut at around it.
        before = round((BEGINS_S[-1] - last["start_s"]) * RATE)
        whole = round((last["end_s"] - last["start_s"]) * RATE)
        alone = bytes(2 * before) + sound
        path.write_bytes(wav(alone + bytes(2 * whole - len(alone))))
        _, expected = self.words(path)
        self.assertEqual(len(expected), 1)
        self.assertEqual([word["word"] for word in last["words"]], [word["word"] for word in expected[0]["words"]])
        self.assertGreater(len(last["words"]), 1)
        for long, short in zip(last["words"], expected[0]["words"]):
            for key in ("start_s", "end_s"):
                self.assertAlmostEqual(long[key] - last["start_s"], short[key], delta=0.02)


if __name__ == "__main__":
    unittest.main()
