"""Transducers through the command line, with the small random checkpoints: what is heard is what the maker's code heard."""
import array
import io
import json
import pathlib
import random
import struct
import tarfile
import unittest

from program import DATA, Program, noise

FOLDER = DATA / "transducer"
SAMPLES = 20800  # that the reference heard
NO_WORD = {"conformer_rnnt": (0,), "eou": (24,), "unified": (0,)}


def reference_tokens(name, array_name="tokens"):
    """Of a reference file (safetensors: a header of JSON, then the values)."""
    data = (FOLDER / f"{name}.reference.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + length])[array_name]["data_offsets"]
    return list(array.array("i", data[8 + length:][begin:end]))


class Transducer(Program):
    def setUp(self):
        super().setUp()
        self.sound = noise(SAMPLES)

    def arguments(self, name, *more):
        path = FOLDER / name if (FOLDER / name).is_dir() else FOLDER / f"{name}.nemo"
        if isinstance(name, pathlib.Path):
            path = name
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

    def test_times_of_tokens_are_the_makers(self):
        """Specials, and the blanks of a vocabulary of characters, belong to no word."""
        rng = random.Random(3)
        self.sound = b"".join(struct.pack("<h", int(rng.gauss(0, 3000))) for _ in range(96000))  # as the reference's
        for name, times in json.loads((FOLDER / "token_times.json").read_text()).items():
            frame_s = 0.04 if name.startswith("conformer") else 0.08
            answer = json.loads(self.transcribe(name, "--format", "json", "--timestamps", "token"))
            words = [word for segment in answer["segments"] for word in segment["words"]]
            found = [[token["id"], round(token["start_s"] / frame_s), round(token["end_s"] / frame_s)]
                     for word in words for token in word["tokens"]]
            self.assertEqual(found, [time for time in times if time[0] not in NO_WORD.get(name, ())], name)
            for word in words:
                self.assertEqual("".join(token["text"] for token in word["tokens"]), word["word"])
                self.assertEqual(word["confidence"], min(token["confidence"] for token in word["tokens"]))
            shown = self.transcribe(name, "--timestamps", "token").splitlines()
            self.assertEqual([line.split("] ")[1] for line in shown],
                             [token["text"] for word in words for token in word["tokens"]])
        streamed = [json.loads(line) for line in self.transcribe("rnnt", "--stream", "--format", "json", "--timestamps",
                                                                 "token", "--end-silence", "100").splitlines()]
        final = next(event for event in streamed if event.get("final"))
        tokens = [token for word in final["words"] for token in word["tokens"]]
        self.assertEqual([token["id"] for token in tokens], final["tokens"])
        self.assertGreater(len(tokens), 100)
        self.check_refused(2, "for text and json", "rnnt", "--timestamps", "token", "--format", "srt")

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

    def finals(self, name, *more):
        """Of a stream, each with the number of the chunk behind which it came."""
        lines = [json.loads(line) for line in self.transcribe(name, "--stream", "--format", "json", "--chunks",
                                                             *more).splitlines()]
        out, chunk = [], 0
        for line in lines:
            chunk = line.get("chunk", chunk)
            if line.get("final"):
                out.append({**line, "chunk": chunk})
        return out

    def test_a_models_own_end_of_utterance(self):
        """The tokens end it at once and are no text; <EOB> says that it was a word of attention alone."""
        rng = random.Random(1)
        self.sound = b"".join(struct.pack("<h", max(-32768, min(32767, int(rng.gauss(0, 10000))))) for _ in range(16000))
        self.sound += bytes(16000 * 6)
        found = self.finals("eou")
        self.assertEqual([event["reason"] for event in found], ["eou", "end"])
        self.assertGreater(len(found[0]["text"]), 0)
        self.assertLess(found[0]["chunk"], 40, "it waited for more sound")
        self.assertNotIn("<", self.transcribe("eou", "--stream"))
        other = [(event["text"], event["reason"]) for event in self.finals(self.swapped("eou", b"<EOU>", b"<EOB>"))]
        self.assertEqual(other, [(event["text"], event["reason"].replace("eou", "eob")) for event in found])
        whole = self.finals("eou", "--no-endpoint")
        self.assertEqual([event["reason"] for event in whole], ["end"])
        self.assertNotIn("<", whole[0]["text"])

    def swapped(self, name, one, other):
        """A checkpoint whose labels of these names, equally long, stand for each other."""
        path = self.folder / "swapped.nemo"
        with tarfile.open(FOLDER / f"{name}.nemo") as source, tarfile.open(path, "w") as target:
            for member in source.getmembers():
                content = source.extractfile(member).read()
                if not member.name.endswith(".ckpt"):
                    content = content.replace(one, b"?" * len(one)).replace(other, one).replace(b"?" * len(one), other)
                target.addfile(member, io.BytesIO(content))
        return path

    def test_why_an_utterance_ends(self):
        rng = random.Random(3)
        self.sound = b"".join(struct.pack("<h", int(rng.gauss(0, 3000))) for _ in range(16000 * 6))
        by_length = self.finals("rnnt", "--max-utterance", "2.5", "--end-silence", "100")
        self.assertEqual([event["reason"] for event in by_length], ["length", "length", "end"])
        self.sound += bytes(32000 * 4) + self.sound
        by_silence = [event["reason"] for event in self.finals("hybrid_streaming", "--end-silence", "0.3")]
        self.assertIn("silence", by_silence)
        self.assertEqual([event["reason"] for event in self.finals("hybrid_streaming", "--no-endpoint")], ["end"])
        self.assertEqual(len(self.finals("hybrid_streaming", "--no-endpoint", "--max-utterance", "3600")), 1)
        self.check_refused(2, "with --no-endpoint", "rnnt", "--stream", "--no-endpoint", "--end-silence", "1")
        self.check_refused(2, "with --no-endpoint", "rnnt", "--stream", "--no-endpoint", "--idle-silence", "1")
        self.check_refused(2, "need --stream", "rnnt", "--no-endpoint")
        self.check_refused(2, "an endpoint after -1 s", "rnnt", "--stream", "--idle-silence", "-1")

    def test_an_utterance_begins_anew_behind_silence(self):
        """Its length counts from there: with --idle-silence inf the silence before it is part of it."""
        rng = random.Random(3)
        self.sound = bytes(32000 * 6) + b"".join(struct.pack("<h", int(rng.gauss(0, 3000))) for _ in range(16000 * 3))
        limits = ["--max-utterance", "8", "--end-silence", "100"]
        anew = self.finals("tdt", *limits, "--idle-silence", "2")
        self.assertNotIn("length", [event["reason"] for event in anew])
        self.assertIn("length", [event["reason"] for event in self.finals("tdt", *limits, "--idle-silence", "inf")])

    def test_beam(self):
        greedy = self.tokens("hybrid_streaming")
        self.assertEqual(self.tokens("hybrid_streaming", "--beam", "1"), greedy)
        found = self.tokens("hybrid_streaming", "--beam", "4")
        self.assertNotEqual(found, greedy)
        self.assertGreater(len(found), 0)
        self.check_refused(2, "--beam is 17; give a whole number from 0 to 16", "hybrid_streaming", "--beam", "17")
        self.check_refused(2, "--beam is -1", "hybrid_streaming", "--beam", "-1")
        self.check_refused(5, "a CTC head has no beam search", "conformer_ctc", "--beam", "4")
        self.check_refused(5, "a stream takes nothing back", "hybrid_streaming", "--beam", "4", "--stream")
        self.check_refused(5, "leave out either", "hybrid_streaming", "--beam", "4", "--boost", "jaa")

    def test_the_ctc_head_of_a_hybrid(self):
        for name in ("hybrid_streaming", "tdt_ctc_1_1b"):
            self.assertEqual(self.tokens(name, "--head", "ctc"), reference_tokens(name, "ctc.tokens"))
            self.assertNotEqual(self.tokens(name, "--head", "ctc"), self.tokens(name))
            self.assertEqual(self.tokens(name, "--head", "transducer"), self.tokens(name))
            lines = self.transcribe(name, "--head", "ctc", "--stream", "--format", "json").splitlines()
            finals = [event for event in map(json.loads, lines) if event.get("final")]
            self.assertEqual([token for event in finals for token in event["tokens"]],
                             reference_tokens(name, "ctc.tokens"))
        words = json.loads(self.transcribe("tdt_ctc_1_1b", "--head", "ctc", "--format", "json", "--timestamps", "word"))
        for word in words["segments"][0]["words"]:
            self.assertTrue(word["start_s"] < word["end_s"] and 0 <= word["confidence"] <= 1, word)
        self.check_refused(5, "none of CTC", "tdt", "--head", "ctc")
        self.check_refused(5, "no transducer's", "conformer_ctc", "--head", "transducer")
        self.check_refused(5, "cannot favour words", "hybrid_streaming", "--head", "ctc", "--boost", "jaa")
        self.check_refused(5, "no beam search", "hybrid_streaming", "--head", "ctc", "--beam", "4")

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
        self.check_refused(2, "a whole number from 0", "hybrid_streaming", "--stream", "--look-ahead", "-2")
        self.check_refused(2, "need --stream", "hybrid_streaming", "--look-ahead", "1")
        self.check_refused(5, "has no look-ahead", "tdt", "--stream", "--look-ahead", "1")

    def test_windows_that_make_no_sense(self):
        for window in ("2", "10,2", "10,2,2,2", "10,2,2s", "a,2,2", "10,,2"):
            self.check_refused(2, "stream_window", "tdt", "--stream", "--stream-window", window)
        for window in ("10,0,2", "-1,2,2", "119,2,2", "nan,2,2", "1,inf,2"):
            self.check_refused(2, "a window of", "tdt", "--stream", "--stream-window", window)
        self.check_refused(5, "choose its look-ahead", "hybrid_streaming", "--stream", "--stream-window", "10,2,2")


if __name__ == "__main__":
    unittest.main()
