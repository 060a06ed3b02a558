"""Speech to text with the small random checkpoint: what goes in, what comes out, and what is refused."""
import json
import math
import os
import signal
import struct
import subprocess
import time
import unittest

from program import DATA, Program, tiny_whisper, tone, wav

EVENT = ["segment", "final", "stable_bytes", "latency_ms", "text", "start_s", "end_s", "confidence", "tokens"]


class Tiny(Program):
    def setUp(self):
        super().setUp()
        self.model = tiny_whisper(self.folder / "tiny")
        self.file("good.wav", wav(tone(1)))

    def file(self, name, content):
        (self.folder / name).write_bytes(content)
        return self.folder / name

    def transcribe(self, *arguments, **options):
        return self.run_it("transcribe", "--model", self.model, *arguments, **options)

    def check_refused(self, status, words, *arguments, text=b""):
        self.check_fails(status, words, "transcribe", "--model", self.model, *arguments, text=text)


class Transcribe(Tiny):
    def test_one_file(self):
        code, output, errors = self.transcribe(self.folder / "good.wav", "--format", "json")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(output.count(b"\n"), 1)
        answer = json.loads(output)
        self.assertEqual(list(answer), ["file", "model", "precision", "threads", "load_ms", "total_ms", "rtf", "language",
                                        "audio_seconds", "text", "segments"])
        self.assertEqual(answer["audio_seconds"], 1.0)
        for ending, start in (("srt", b""), ("vtt", b"WEBVTT\n\n")):
            code, output, errors = self.transcribe(self.folder / "good.wav", "--format", ending, "--out", "x", "--force")
            self.assertEqual((code, output, errors), (0, b"", ""))
            self.assertTrue((self.out / "x").read_bytes().startswith(start))

    def test_what_is_there_is_not_lost(self):
        good = self.folder / "good.wav"
        recording = good.read_bytes()
        self.check_refused(2, "would be overwritten", good, "--out", good, "--force")
        self.check_refused(2, "exists; --force", self.folder / "b.wav", "--out", good)
        self.assertEqual(good.read_bytes(), recording)
        notes = self.file("good.txt", b"notes")
        os.utime(notes, (0, 0))
        self.check_refused(2, "exists and is older than", good, "--out-dir", self.folder)
        self.assertEqual(notes.read_bytes(), b"notes")
        self.check_refused(7, "cannot write", good, "--out", "none/x.txt")

    def test_same_words_however_the_sound_comes(self):
        def words(*arguments, text=b""):
            code, output, errors = self.transcribe(*arguments, "--precision", "f32", text=text)
            self.assertEqual((code, errors), (0, ""))
            return output

        samples = tone(1)
        expected = words(self.folder / "good.wav")
        self.assertEqual(words("-", text=wav(samples)), expected)
        self.assertEqual(words(text=samples, *["--raw", "s16", "--rate", "16000"]), expected)
        raw = self.file("good.raw", samples)
        self.assertEqual(words(raw, "--raw", "s16", "--rate", "16000"), expected)

    def convert(self, name, *options):
        path = self.folder / name
        subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", "-i", self.folder / "good.wav", *options, path], check=True)
        return path

    def test_what_browsers_and_phones_record(self):
        expected = self.transcribe(self.folder / "good.wav")[1]
        lossless = self.convert("voice.m4a", "-codec:a", "alac")
        self.assertEqual(self.transcribe(lossless), (0, expected, ""))
        self.assertEqual(self.transcribe("-", text=lossless.read_bytes()), (0, expected, ""))
        for name, codec in (("a.webm", "libopus"), ("b.webm", "libvorbis"), ("a.mp4", "aac"), ("a.aac", "aac")):
            code, output, errors = self.transcribe(self.convert(name, "-codec:a", codec), "--format", "json")
            self.assertEqual((code, errors), (0, ""), name)
            self.assertAlmostEqual(json.loads(output)["audio_seconds"], 1, delta=0.1)
        content = (self.folder / "a.webm").read_bytes()
        code, output, errors = self.transcribe(self.file("cut.webm", content[:len(content) * 3 // 4]), "--format", "json")
        self.assertEqual(code, 0, errors)
        self.assertRegex(errors, r"warning: .*cut off.*; only the first 0\.\d s were read")
        self.assertLess(json.loads(output)["audio_seconds"], 0.95)

    def test_without_ffmpeg_s_libraries(self):
        hidden = self.folder / "hidden"  # empty files come before the machine's own
        hidden.mkdir()
        for number in range(59, 80):
            (hidden / f"libavformat.so.{number}").touch()
        path = self.convert("a.webm", "-codec:a", "libopus")
        code, _, errors = self.run_it("transcribe", "--model", self.model, path, variables={"LD_LIBRARY_PATH": str(hidden)})
        self.assertEqual((code, errors.count("\n")), (5, 1), errors)
        self.assertRegex(errors, r"is WebM or Matroska, which needs FFmpeg's libraries, and libavformat\.so\.\d+ cannot be loaded "
                                 r"\(Debian's package libavformat\d+ brings it\); WAV, FLAC, MP3, Ogg with Vorbis or Opus need none of them")
        good = self.run_it("transcribe", "--model", self.model, self.folder / "good.wav", variables={"LD_LIBRARY_PATH": str(hidden)})
        self.assertEqual((good[0], good[2]), (0, ""))

    def test_ctrl_c_ends_the_wait_for_a_decoder(self):
        sleeper, begun = self.file("sleeper", b"#!/bin/sh\ntouch begun\nexec sleep 100\n"), self.out / "begun"
        sleeper.chmod(0o755)
        film = self.file("a.webm", b"\x1aE\xdf\xa3" + bytes(100))
        for arguments in ([film], ["-"]):
            begun.unlink(missing_ok=True)
            running = self.start("transcribe", "--model", self.model, *arguments, variables={"SYRINX_DECODE": str(sleeper)})
            if arguments == ["-"]:
                running.stdin.write(film.read_bytes())
            running.stdin.close()
            self.wait_for(begun.exists)
            asked = time.monotonic()
            running.send_signal(signal.SIGINT)
            self.assertEqual(running.wait(60), 130)
            self.assertLess(time.monotonic() - asked, 20)

    def test_sounds_that_are_no_sounds(self):
        nan = struct.pack("<f", math.nan)
        whole = (DATA / "audio/flac_24000.flac").read_bytes()
        for status, words, content in ((4, "is empty", b""), (4, "no audio", wav(b"")), (5, "not an audio format", b"hello" * 100),
                                       (4, "not a number", wav(nan * 1000, form=3, bits=32)),
                                       (4, "cut off", wav(tone(1))[:30]), (4, "cut off", whole[:100]),
                                       (6, "9 channels", wav(bytes(18000), channels=9)),
                                       (6, "rate of 500 Hz", wav(bytes(8000), rate=500))):
            self.check_refused(status, words, self.file("bad", content))
            self.check_refused(status, words, "-", text=content)
        self.check_refused(3, "none.wav", self.folder / "none.wav")
        self.check_refused(3, "no??[31mne.wav", self.folder / "no\n\x1b[31mne.wav")  # one line, and no orders to a terminal
        self.check_refused(7, "tiny", self.model)

    def test_a_cut_recording_is_heard_in_part(self):
        flac = (DATA / "audio/flac_24000.flac").read_bytes()
        for content in (wav(tone(1))[:20000], flac[:-1200]):
            code, output, errors = self.transcribe(self.file("part", content), "--format", "json")
            self.assertEqual(code, 0, errors)
            self.assertRegex(errors, r"^syrinx: warning: '.*part' is cut off.*; only the first \d\.\d s were read\n$")
            answer = json.loads(output)
            self.assertEqual(len(answer["warnings"]), 1)
            self.assertLess(0, answer["audio_seconds"])
        code, output, errors = self.transcribe("--stream", "--format", "json", text=wav(tone(1))[:20000])
        self.assertEqual(code, 0)
        self.assertIn("warning: 'standard input' is cut off", errors)

    def test_channels_of_their_own(self):
        mono = tone(1)
        two = b"".join(mono[at:at + 2] + bytes(2) for at in range(0, len(mono), 2))
        code, output, errors = self.transcribe(self.file("two.wav", wav(two, channels=2)), "--channels", "separate",
                                               "--format", "json")
        self.assertEqual((code, errors), (0, ""))
        answer = json.loads(output)
        self.assertEqual(answer["audio_seconds"], 1.0)
        self.assertLessEqual({segment["channel"] for segment in answer["segments"]}, {0})  # the other is digital silence
        both = b"".join(2 * mono[at:at + 2] for at in range(0, len(mono), 2))
        code, output, errors = self.transcribe(self.file("both.wav", wav(both, channels=2)), "--channels", "separate",
                                               "--format", "json")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual({segment["channel"] for segment in json.loads(output)["segments"]}, {0, 1})
        self.check_refused(2, "name a file", "--channels", "separate", text=wav(mono))
        self.check_refused(2, "give a number, or separate", self.folder / "two.wav", "--raw", "s16", "--rate", "16000",
                           "--channels", "both")

    def test_unusual_sounds(self):
        for content in (wav(struct.pack("<h", 5)), wav(tone(0.5, 96000, 8), 96000, 8), wav(tone(0.5, 1000), 1000)):
            code, _, errors = self.transcribe(self.file("odd.wav", content))
            self.assertEqual((code, errors), (0, ""))

    def test_many_files_some_of_them_bad(self):
        names = ["a.wav", "b.wav", "c.wav"]
        for name in names:
            self.file(name, wav(tone(0.5)))
        cut = self.file("cut.wav", wav(tone(1))[:30])
        files = [self.folder / "a.wav", cut, self.folder / "b.wav", self.folder / "none.wav", self.folder / "c.wav"]
        code, _, errors = self.transcribe(*files, "--out-dir", "texts", "--jobs", "2")
        self.assertEqual(code, 4)
        self.assertEqual(errors.count("syrinx: "), 3, errors)
        self.assertIn("2 of 5 files", errors)
        self.assertEqual(sorted(path.name for path in (self.out / "texts").iterdir()), ["a.txt", "b.txt", "c.txt"])
        good = [self.folder / name for name in names]
        code, _, errors = self.transcribe(*good, "--out-dir", "texts")
        self.assertEqual(code, 0)
        self.assertIn("3 of 3 files are done already", errors)

    def test_a_stream_is_json_lines(self):
        code, output, errors = self.transcribe("--stream", "--format", "json", "--chunks", "--chunk-ms", "500",
                                               text=wav(tone(1)))
        self.assertEqual((code, errors), (0, ""))
        lines = [json.loads(line) for line in output.splitlines()]
        self.assertEqual([line["chunk"] for line in lines if "chunk" in line], [0, 1])
        for line in lines:
            if "segment" in line:
                self.assertEqual("reason" in line, line["final"])
                line.pop("reason", None)
                self.assertEqual(list(line)[:len(EVENT)], EVENT)
        self.assertEqual(lines[-1]["audio_seconds"], 1.0)
        self.assertLessEqual(set(lines[-1]["latency_ms"]), {"p50", "p99", "max"})

    def test_a_stream_that_is_none(self):
        self.check_refused(4, "not a WAV", "--stream", text=b"fLaC" + bytes(100))
        self.check_refused(4, "no audio", "--stream")
        self.check_refused(6, "rate of 5 Hz", "--stream", "--raw", "s16", "--rate", "5", text=bytes(100))

    def test_control_c_ends_a_stream(self):
        process = self.start("transcribe", "--model", self.model, "--stream", "--format", "json", "--chunks", "--raw", "s16",
                             "--rate", "16000")
        process.stdin.write(tone(0.5))
        process.stdin.flush()
        process.stdout.readline()  # it hears
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(120), 130)
        self.assertIn("audio_seconds", json.loads(process.stdout.read().splitlines()[-1]))
        process.communicate()

    def test_mistakes_in_the_arguments(self):
        good = self.folder / "good.wav"
        for words, arguments in (("--microphone takes no file", ["--microphone", good]), ("--out-dir", [good, good, "--out", "x"]),
                                 ("--rate", [good, "--raw", "s16"]), ("--raw", [good, "--rate", "8000"]),
                                 ("--channels N is for raw", [good, "--channels", "2"]),
                                 ("give one of them", [good, "--out", "x", "--out-dir", "y"]),
                                 ("--realtime needs", [good, "--realtime"]), ("--chunks needs", [good, "--chunks"]),
                                 ("--format json", ["--stream", good, "--chunks"]),
                                 ("redirect it", ["--stream", good, "--out", "x"]), ("--jobs", [good, "--jobs", "65"]),
                                 ("threads", [good, "--threads", "65"]), ("both become", [good, good, "--out-dir", "."])):
            self.check_refused(2, words, *arguments)

    def test_nothing_is_installed(self):
        self.check_fails(3, "syrinx pull whisper-base", "transcribe", self.folder / "good.wav")


class Microphone(Tiny):
    """On devices of ALSA that read a file, or give silence."""

    def hear(self, set_up, *arguments, **options):
        path = self.folder / "asoundrc"
        path.write_text(set_up)
        variables = {"ALSA_CONFIG_PATH": str(path), "JACK_NO_START_SERVER": "1"}
        return self.transcribe("--microphone", *arguments, variables=variables, **options)

    def hearing(self, path):
        return ('pcm.nowhere { type null }\npcm.!default { type file file "/dev/null" infile "%s" format raw slave.pcm '
                'nowhere }\n' % path)

    def test_a_microphone_hears(self):
        sound = self.file("in.raw", struct.pack("<f", 0.1) * 160000)
        code, output, errors = self.hear(self.hearing(sound), "--seconds", "0.2", "--format", "json")
        self.assertEqual(code, 0, errors)
        self.assertGreaterEqual(json.loads(output.splitlines()[-1])["audio_seconds"], 0.2)

    def test_no_microphone_is_an_answer(self):
        code, _, errors = self.hear("pcm.!default { type hw card 99 }\n")
        self.assertEqual(code, 8)
        self.assertRegex(errors, r"^syrinx: this machine has no microphone.*give a file instead\n$")
        code, _, errors = self.hear("pcm.!default { type null }\n", "--device", "gramophone")
        self.assertEqual(code, 8)
        self.assertIn("'gramophone'; this machine has: ", errors)

    def test_a_microphone_that_vanishes(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        writer = os.open(pipe, os.O_RDWR)
        os.write(writer, struct.pack("<f", 0.1) * 4000)
        code, _, errors = self.hear(self.hearing(pipe))
        os.close(writer)
        self.assertEqual(code, 7)
        self.assertRegex(errors, r"^syrinx: the microphone 'default' has stopped giving sound; .*\n$")



if __name__ == "__main__":
    unittest.main()
