"""Transducers through the command line, with the small random checkpoints: what is heard is what the maker's code heard."""
import array
import json
import random
import struct
import unittest

from program import DATA, Program

FOLDER = DATA / "transducer"
SAMPLES = 20800  # that the reference heard


def noise(count):
    """As tools/reference/transducer.py, 16-bit samples."""
    state, out = 12345, array.array("h")
    for i in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append((state >> 16) - 32768 >> 1 + i // 1600 % 5)
    return out.tobytes()


def reference_tokens(name):
    """Of a reference file (safetensors: a header of JSON, then the values)."""
    data = (FOLDER / f"{name}.reference.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + length])["tokens"]["data_offsets"]
    return list(array.array("i", data[8 + length:][begin:end]))


class Transducer(Program):
    def setUp(self):
        super().setUp()
        self.sound = noise(SAMPLES)

    def arguments(self, name, *more):
        path = FOLDER / name if (FOLDER / name).is_dir() else FOLDER / f"{name}.nemo"
        return ["transcribe", "--model", path, "--precision", "f32", "--threads", "1", "--raw", "s16",
                "--rate", "16000", *more]

    def transcribe(self, name, *more):
        code, output, errors = self.run_it(*self.arguments(name, *more), text=self.sound)
        self.assertEqual((code, errors), (0, ""))
        return output.decode()

    def tokens(self, name, *more):
        answer = json.loads(self.transcribe(name, "--format", "json", *more))
        return [token for segment in answer["segments"] for token in segment["tokens"]]

    def check_refused(self, status, words, name, *more):
        self.check_fails(status, words, *self.arguments(name, *more), text=self.sound)

    def test_a_recording_gives_the_makers_labels(self):
        for name in ("rnnt", "hybrid_streaming"):
            self.assertEqual(self.tokens(name), reference_tokens(name))
            self.assertGreater(len(reference_tokens(name)), 50)

    def test_words_with_times_and_confidence(self):
        answer = json.loads(self.transcribe("hybrid_streaming", "--format", "json", "--timestamps", "word"))
        self.assertEqual(answer["audio_seconds"], SAMPLES / 16000)
        last = 0
        for segment in answer["segments"]:
            self.assertEqual(" ".join(word["word"] for word in segment["words"]), segment["text"])
            for word in segment["words"]:
                self.assertLessEqual(last, word["start_s"])
                self.assertLessEqual(word["start_s"], word["end_s"])
                self.assertTrue(0 <= word["confidence"] <= 1)
                last = word["start_s"]
            self.assertLessEqual(segment["words"][-1]["end_s"], SAMPLES / 16000 + 0.08)
        self.assertGreater(len(answer["segments"][0]["words"]), 5)
        lines = self.transcribe("hybrid_streaming", "--format", "vtt", "--timestamps", "word").split("\n\n")
        self.assertEqual(lines[0], "WEBVTT")
        self.assertGreater(len(lines), 5)

    def test_a_stream_says_the_same_at_every_chunk(self):
        for chunk in ("10", "80", "700"):
            lines = [json.loads(line) for line in self.transcribe("hybrid_streaming", "--stream", "--format", "json",
                                                                 "--chunk-ms", chunk).splitlines()]
            events = [line for line in lines if "segment" in line]
            self.assertEqual([token for event in events if event["final"] for token in event["tokens"]],
                             reference_tokens("hybrid_streaming"))
            self.assertTrue(events[-1]["final"])
            shown = ""
            for event in events:
                self.assertEqual(event["stable_bytes"], len(event["text"].encode()))
                self.assertTrue(event["text"].startswith(shown), "text only grows")
                shown = "" if event["final"] else event["text"]

    def test_endpoints_and_windows_of_a_stream(self):
        rng = random.Random(3)
        self.sound = b"".join(struct.pack("<h", int(rng.gauss(0, 3000))) for _ in range(16000 * 6))
        self.assertEqual(len(self.transcribe("tdt", "--stream", "--max-utterance", "100", "--end-silence",
                                             "100").splitlines()), 1)
        self.assertGreater(len(self.transcribe("tdt", "--stream", "--max-utterance", "2", "--end-silence",
                                               "100").splitlines()), 1)
        usual = self.transcribe("tdt", "--stream")
        self.assertNotEqual(self.transcribe("tdt", "--stream", "--stream-window", "4,0.4,0.4"), usual)
        self.assertEqual(self.transcribe("tdt", "--stream", "--stream-window", "10,2,2"), usual)

    def test_beam(self):
        greedy = self.tokens("hybrid_streaming")
        self.assertEqual(self.tokens("hybrid_streaming", "--beam", "1"), greedy)
        found = self.tokens("hybrid_streaming", "--beam", "4")
        self.assertNotEqual(found, greedy)
        self.assertGreater(len(found), 0)
        self.check_refused(2, "beams have 2 to 16", "hybrid_streaming", "--beam", "17")
        self.check_refused(2, "a beam of -1", "hybrid_streaming", "--beam", "-1")
        self.check_refused(5, "CTC head alone", "conformer_ctc", "--beam", "4")
        self.check_refused(5, "a stream takes nothing back", "hybrid_streaming", "--beam", "4", "--stream")
        self.check_refused(5, "leave out either", "hybrid_streaming", "--beam", "4", "--boost", "jaa")

    def test_phrases_that_are_favoured(self):
        model = "transformers/nemotron"
        plain = self.transcribe(model)
        self.assertNotIn("b", plain)
        self.assertIn("b", self.transcribe(model, "--boost", "b", "--boost-score", "3"))
        self.assertIn("b", self.transcribe(model, "--boost", "b", "--boost-score", "3", "--stream"))

    def test_languages_of_a_prompt(self):
        for name in ("prompt", "transformers/nemotron3_5"):
            self.assertNotEqual(self.tokens(name, "--language", "de-DE"), self.tokens(name, "--language", "en-US"))
            self.check_refused(2, "xx", name, "--language", "xx")

    def test_transformers_folders_are_recognisers(self):
        for folder in sorted((FOLDER / "transformers").iterdir()):
            if folder.is_dir():
                self.assertTrue(self.transcribe(f"transformers/{folder.name}").strip(), folder)

    def test_look_ahead(self):
        outputs = {self.transcribe("hybrid_streaming", "--stream", "--look-ahead", str(frames)) for frames in range(3)}
        self.assertIn(self.transcribe("hybrid_streaming", "--stream"), outputs)
        self.check_refused(2, "5 frames ahead, but 1, 0, 2", "hybrid_streaming", "--stream", "--look-ahead", "5")
        self.check_refused(2, "0 or more", "hybrid_streaming", "--stream", "--look-ahead", "-2")
        self.check_refused(2, "need --stream", "hybrid_streaming", "--look-ahead", "1")
        self.check_refused(5, "has no look-ahead", "tdt", "--stream", "--look-ahead", "1")

    def test_windows_that_make_no_sense(self):
        for window in ("2", "10,2", "10,2,2,2", "10,2,2s", "a,2,2", "10,,2"):
            self.check_refused(2, "--stream-window", "tdt", "--stream", "--stream-window", window)
        for window in ("10,0,2", "-1,2,2", "119,2,2", "nan,2,2", "1,inf,2"):
            self.check_refused(2, "a window of", "tdt", "--stream", "--stream-window", window)
        self.check_refused(5, "choose its look-ahead", "hybrid_streaming", "--stream", "--stream-window", "10,2,2")


if __name__ == "__main__":
    unittest.main()
