"""With the installed models (label `real`): `syrinx pull kokoro whisper-base` comes first; without it these tests fail."""
import json
import os
import struct
import unittest

from program import Program


class Text(Program):
    home = "the user's own"  # models and caches as they are installed

    def speak(self, *arguments, text=b"", timeout=500):
        return self.run_it("speak", *arguments, text=text, timeout=timeout)

    def test_text_without_words(self):
        for text in ("", "   ", "🙂🙂", "こんにちは", "...", "\n\n"):
            self.check_fails(2, "nothing to say", "speak", text, "--out", "x.wav")
            self.check_fails(2, "nothing to say", "speak", "-", "--out", "x.wav", text=text.encode())

    def test_text_that_is_not_text(self):
        self.check_fails(2, "UTF-8", "speak", "-", "--out", "x.wav", text=bytes(range(256)))

    def test_what_cannot_be_said_is_counted(self):
        code, output, errors = self.speak("Good morning 🙂, said the 猫.", "--out", "x.wav", "--json")
        self.assertEqual(code, 0)
        self.assertIn("cannot be spoken", errors)
        self.assertGreater(json.loads(output)["audio_seconds"], 0.8)

    def test_voices_of_other_languages_need_phonemes(self):
        self.check_fails(5, "French", "speak", "hello", "--voice", "ff_siwis", "--out", "x.wav")
        self.check_fails(3, "'zz_none'", "speak", "hello", "--voice", "zz_none", "--out", "x.wav")
        self.check_fails(3, "'nobody'", "speak", "hello", "--voice", "nobody", "--out", "x.wav")

    def test_british_voices_and_blends(self):
        for voice in ("bf_emma", "af_heart:0.6+am_adam:0.4", "bm_george,bf_emma"):
            code, output, errors = self.speak("Hello.", "--voice", voice, "--out", "x.wav", "--json")
            self.assertEqual(code, 0, errors)
            self.assertEqual(json.loads(output)["voice"], voice)

    def test_speed(self):
        def seconds(speed):
            return json.loads(self.speak("How fast can this sentence be said?", "--speed", speed, "--out", "x.wav",
                                         "--json")[1])["audio_seconds"]

        self.assertGreater(seconds("0.7"), 1.5 * seconds("1.4"))

    def test_a_megabyte_of_text_starts_at_once(self):
        sentence = b"This is one sentence of very many. "
        process = self.start("speak", "-", "--out", "-", "--format", "pcm")
        process.stdin.write(sentence * ((1 << 16) // len(sentence)))
        process.stdin.flush()
        self.assertEqual(len(process.stdout.read(20000)), 20000)
        process.kill()
        process.communicate()

    def test_a_sentence_without_end_is_limited(self):
        code, _, errors = self.speak("-", "--out", "x.wav", text=b"a" * ((2 << 20) + 1))
        self.assertIn(code, (2, 6), errors)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_voices(self):
        code, output, _ = self.run_it("voices", "--json")
        self.assertEqual(code, 0)
        names = [voice["name"] for voice in json.loads(output)]
        self.assertIn("af_heart", names)
        self.assertIn("bm_george", names)
        self.assertEqual(self.run_it("voices", "--names")[1].decode().split(), names)

    def test_bench_vad(self):
        code, output, errors = self.run_it("bench", "vad", "--seconds", "1", "--runs", "2", "--json")
        self.assertEqual(code, 0, errors)
        figures = json.loads(output)
        self.assertEqual((figures["windows"], figures["n"]), (31, 2))
        self.assertGreaterEqual(figures["window_us_max"], figures["window_us_p50"])
        self.assertGreater(figures["window_us_p50"], 0)
        self.check_fails(3, "'none.bin'", "bench", "vad", "--file", "none.bin")
        self.check_fails(2, "0 runs", "bench", "vad", "--runs", "0")

    def test_transcribe_voice_options(self):
        for words, arguments in (("probability, from 0 to 1", ("--vad-threshold", "2")),
                                 ("--stream or --microphone", ("--end-silence", "1")),
                                 ("no voice activity to set", ("--all-sound", "--vad-pad", "5")),
                                 ("0 s makes no sense", ("--stream", "--end-silence", "0"))):
            sound = b"\0\0" * 16000
            self.check_fails(2, words, "transcribe", "-", "--raw", "s16", "--rate", "16000", *arguments, text=sound)

    def test_doctor(self):
        code, output, errors = self.run_it("doctor", "--quick")
        self.assertEqual(code, 0, errors)
        self.assertIn(b"All is well", output)


class Hearing(Program):
    home = "the user's own"

    def test_what_is_said_is_heard(self):
        sentence = "The quick brown fox jumps over the lazy dog."
        self.assertEqual(self.run_it("speak", sentence, "--out", "fox.wav")[0], 0)
        for arguments in (["fox.wav"], ["--stream", "fox.wav"]):
            code, output, errors = self.run_it("transcribe", *arguments)
            self.assertEqual((code, errors), (0, ""))
            self.assertEqual(" ".join(output.decode().split()), sentence)
        code, output, _ = self.run_it("transcribe", "fox.wav", "--format", "srt")
        self.assertEqual(code, 0)
        self.assertTrue(output.startswith(b"1\n00:00:00,"), output)

    def test_hours_of_silence_take_little_memory(self):
        size = 2 * 3600 * 16000 * 2
        with open(self.out / "silence.wav", "wb") as file:  # a hole, which takes no room
            file.write(b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " +
                       struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16) + b"data" + struct.pack("<I", size))
            file.truncate(44 + size)
        process = self.start("transcribe", "silence.wav", "--format", "json")
        process.stdin.close()
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0, process.stderr.read())
        process.stdout.close()
        process.stderr.close()
        answer = json.loads(output)
        self.assertEqual((answer["audio_seconds"], answer["text"]), (7200.0, ""))
        self.assertLess(usage.ru_maxrss, 500 << 10)  # KiB; the samples alone would be 461 MB


if __name__ == "__main__":
    unittest.main()
