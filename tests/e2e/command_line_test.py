"""The program without an installed model: the command tree, and speech with the small random checkpoint."""
import contextlib
import json
import os
import signal
import struct
import subprocess
import unittest
import wave

from program import DATA, FIGURES, TINY, Program

HELLO = "həlˈO wˈɜɹld."


class CommandTree(Program):
    def test_help(self):
        code, output, _ = self.run_it("--help")
        self.assertEqual(code, 0)
        for command in ("speak", "transcribe", "chat", "serve", "voices", "doctor", "inspect", "bench", "pull", "list", "rm"):
            self.assertIn(command, output.decode())
            code, text, _ = self.run_it(command, "--help")
            self.assertEqual(code, 0, command)
            self.assertIn(b"Usage", text)

    def test_version_and_licences(self):
        code, output, _ = self.run_it("--version")
        self.assertEqual(code, 0)
        self.assertRegex(output.decode(), r"^syrinx \d+\.\d+\.\d+ \(\S+, \w+\)\ncompiler .+\ntargets .+ chosen\n$")
        code, output, _ = self.run_it("--licences")
        self.assertEqual(code, 0)
        for name in (b"Apache License 2.0", b"Highway", b"libsndfile", b"Installed models"):
            self.assertIn(name, output)

    def test_a_lower_processor(self):
        for arguments in (["--cpu", "SCALAR", "--version"], ["--version", "--cpu", "SCALAR"]):
            _, output, _ = self.run_it(*arguments)
            self.assertIn(b"; SCALAR chosen\n", output)
        self.check_fails(2, "not a target of this build", "--cpu", "ABACUS", "voices")

    def test_generated_pages(self):
        for kind, mark in (("man", b".TH SYRINX 1"), ("bash", b"complete -o filenames -F _syrinx syrinx"),
                           ("zsh", b"#compdef syrinx"), ("fish", b"complete -c syrinx")):
            code, output, _ = self.run_it("generate", kind)
            self.assertEqual(code, 0)
            self.assertIn(mark, output)
            self.assertIn(b"speak", output)
        script = self.folder / "completion"
        script.write_bytes(self.run_it("generate", "bash")[1])
        ask = 'source %s; COMP_WORDS=(syrinx speak --format ""); COMP_CWORD=3; _syrinx; echo "${COMPREPLY[*]}"' % script
        self.assertEqual(subprocess.check_output(["bash", "-c", ask]), b"wav pcm flac opus mp3 aac\n")
        ask = 'source %s; COMP_WORDS=(syrinx do); COMP_CWORD=1; _syrinx; echo "${COMPREPLY[*]}"' % script
        self.assertEqual(subprocess.check_output(["bash", "-c", ask]), b"doctor\n")

    def test_mistakes_in_the_arguments(self):
        self.check_fails(2, "no command was given")
        self.check_fails(2, "unheard", "unheard")
        self.check_fails(2, "--unheard", "speak", "x", "--unheard")
        self.check_fails(2, "--threads", "speak", "x", "--threads", "many")
        self.check_fails(2, "--format", "speak", "x", "--out", "x.wav", "--format", "aiff")

    def test_nothing_is_installed(self):
        for command in (["speak", "hello", "--out", "x.wav"], ["voices"]):
            self.check_fails(3, "syrinx pull kokoro", *command)
        self.check_fails(3, "syrinx list", "speak", "hello", "--out", "x.wav", "--model", "unheard")
        code, output, errors = self.run_it("doctor", "--quick")
        self.assertEqual(code, 3)
        self.assertIn("syrinx pull kokoro", errors)
        for part in (b"WRONG", b"syrinx pull whisper-base", b"syrinx pull smollm2"):
            self.assertIn(part, output)

    def test_models_by_other_names(self):
        self.check_fails(3, "syrinx pull kokoro", "speak", "hello", "--out", "x.wav", "--model", "hexgrad/Kokoro-82M")
        self.check_fails(3, "syrinx pull kokoro", "voices", "--model", "KOKORO-82M")
        self.check_fails(3, "syrinx pull whisper-base", "transcribe", "x.wav", "--model", "openai/whisper-base")
        self.check_fails(3, "syrinx pull smollm2", "chat", "hello", "--model", "smollm2:135m")
        self.check_fails(3, "there is no file or folder 'hexgrad/Kokoro'", "voices", "--model", "hexgrad/Kokoro")
        catalogue = self.folder / "bird.toml"
        catalogue.write_text('name = "bird"\nkind = "bird"\ndescription = "A bird"\nlicence = "MIT"\n'
                             'also = ["Owner/Bird"]\n[[group]]\nrole = "model"\n'
                             'files = [{ name = "bird.txt", text = "tweet" }]\n')
        code, output, errors = self.run_it("pull", "owner/bird", "--catalogue", catalogue)
        self.assertEqual(code, 0, errors)
        self.assertIn(b"bird is ready", output)
        bird = self.folder / "home" / "data" / "models" / "bird" / "bird.txt"
        self.assertEqual(bird.read_text(), "tweet")
        code, output, errors = self.run_it("list", "--catalogue", catalogue, "--json")
        self.assertEqual([(each["name"], each["state"]) for each in json.loads(output)], [("bird", "installed")])
        code, _, errors = self.run_it("rm", "OWNER/BIRD", "--catalogue", catalogue)
        self.assertEqual(code, 0, errors)
        self.assertFalse(bird.parent.exists())

    def test_doctor_where_nothing_can_be_installed(self):
        file = self.folder / "file"
        file.touch()
        for home in ("/dev/null/x", str(file)):
            code, output, errors = self.run_it("doctor", "--quick", variables={"SYRINX_HOME": home})
            self.assertEqual(code, 7, errors)
            self.assertEqual(output.count(b"WRONG"), 1)
            self.assertEqual(errors.count("\n"), 1)
            for part in ("is not a folder", home.removesuffix("/x"), "SYRINX_HOME"):
                self.assertIn(part, errors)
            self.assertNotIn("syrinx pull", errors)

    def test_inspect(self):
        code, output, _ = self.run_it("inspect", DATA / "kokoro/tiny.onnx", "--json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(output)["model"], "kokoro")
        self.check_fails(3, "nothing.here", "inspect", "nothing.here")


class Speech(Program):
    def speak(self, *arguments, text=b""):
        return self.run_it("speak", *TINY, *arguments, text=text)

    def test_formats_that_other_programs_read(self):
        kinds = {"wav": b"RIFF", "flac": b"fLaC", "opus": b"OggS", "mp3": None, "pcm": None}
        for kind, magic in kinds.items():
            path = self.out / ("x." + kind)
            code, _, errors = self.speak(HELLO, "--out", path)
            self.assertEqual(code, 0, errors)
            content = path.read_bytes()
            self.assertGreater(len(content), 500, kind)
            if magic:
                self.assertEqual(content[:4], magic)
        with wave.open(str(self.out / "x.wav")) as sound:
            self.assertEqual((sound.getframerate(), sound.getnchannels(), sound.getsampwidth()), (24000, 1, 2))
            self.assertEqual(sound.readframes(sound.getnframes()), (self.out / "x.pcm").read_bytes())

    def test_json_is_one_object_on_one_line(self):
        code, output, errors = self.speak(HELLO, "--out", "x.wav", "--json", "--threads", "1", "--precision", "f32")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(output.count(b"\n"), 1)
        figures = json.loads(output)
        self.assertEqual(list(figures), FIGURES)
        self.assertEqual((figures["threads"], figures["precision"]), (1, "f32"))
        with wave.open(str(self.out / "x.wav")) as sound:
            self.assertAlmostEqual(sound.getnframes() / 24000, figures["audio_seconds"], places=6)

    def test_json_makes_way_for_sound(self):
        code, output, errors = self.speak(HELLO, "--out", "-", "--json", "--format", "pcm")
        self.assertEqual(code, 0)
        self.assertEqual(list(json.loads(errors)), FIGURES)
        self.assertAlmostEqual(len(output) / 48000, json.loads(errors)["audio_seconds"], places=6)

    def test_a_wav_on_a_pipe_says_that_its_length_is_unknown(self):
        _, output, _ = self.speak(HELLO, "--out", "-")
        self.assertEqual(output[:4], b"RIFF")
        self.assertEqual(struct.unpack("<I", output[4:8])[0], 0xFFFFFFFF)

    def test_same_seed_same_samples(self):
        def samples(*options):
            return self.speak(HELLO, "--out", "-", "--format", "pcm", *options)[1]

        self.assertEqual(samples(), samples())
        self.assertEqual(samples("--noise", "--seed", "5"), samples("--noise", "--seed", "5"))

    def test_word_times(self):
        code, _, _ = self.speak(HELLO, "--out", "x.wav", "--times", "x.times")
        self.assertEqual(code, 0)
        times = [json.loads(line) for line in (self.out / "x.times").read_text().splitlines()]
        self.assertEqual([word["word"] for word in times], ["həlˈO", "wˈɜɹld"])
        self.assertLessEqual(times[0]["start_s"], times[0]["end_s"])
        code, output, errors = self.speak(HELLO, "--out", "x.wav", "--times", "-", "--json")
        self.assertEqual(code, 0, errors)
        self.assertEqual([json.loads(line) for line in output.splitlines()], times)
        self.assertEqual(list(json.loads(errors)), FIGURES)  # they make way
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), ["x.times", "x.wav"])

    def test_every_voice_of_a_blend_must_speak_english(self):
        model = self.tiny_model("af_one", "af_two", "ff_three")
        code, _, errors = self.run_it("speak", "--model", model, "Stop.", "--voice", "af_one+af_two", "--out", "x.pcm")
        self.assertEqual(code, 0, errors)
        (self.out / "x.pcm").unlink()
        self.check_fails(5, "'ff_three' speaks French", "speak", "--model", model, "Stop.", "--voice",
                         "af_one:0.9+ff_three:0.1", "--out", "x.pcm")
        code, _, errors = self.run_it("speak", "--model", model, HELLO, "--phonemes", "--voice", "af_one+ff_three",
                                      "--out", "x.pcm")
        self.assertEqual(code, 0, errors)

    def tiny_model(self, *voices):
        """A folder as `syrinx pull` makes it: the small checkpoint, a small lexicon, the same voice under each name."""
        folder = self.folder / "tiny"
        for source, target in [("kokoro/tiny.onnx", "tiny.onnx"), ("g2p/tiny_gold.json", "g2p/us_gold.json"),
                               *(("kokoro/tiny_voice.bin", "voices/%s.bin" % name) for name in voices)]:
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            (folder / target).write_bytes((DATA / source).read_bytes())
        return folder

    def test_word_times_of_text(self):
        code, output, errors = self.run_it("speak", "--model", self.tiny_model("af_heart"), "[Cats](/kˈæts/) wait to run.",
                                           "--out", "x.wav", "--times", "-")
        self.assertEqual(code, 0, errors)
        times = [json.loads(line) for line in output.splitlines()]
        self.assertEqual([word["word"] for word in times], ["Cats", "wait", "to", "run"])
        self.assertEqual((times[0]["source_begin"], times[0]["source_end"]), (0, len("[Cats](/kˈæts/)".encode())))

    def test_text_as_it_arrives(self):
        process = self.start("speak", *TINY, "-", "--out", "-", "--format", "pcm")
        process.stdin.write("wʌn tˈu θɹˈi fˈɔɹ fˈIv sˈɪks sˈɛvən. ænd ðə nˈɛkst".encode())
        process.stdin.flush()
        first = process.stdout.read(1000)  # before the end of the text is known
        self.assertEqual(len(first), 1000)
        output, _ = process.communicate(b" sentence.")
        self.assertEqual(process.returncode, 0)
        self.assertGreater(len(output), 1000)

    def test_a_pause_ends_a_sentence(self):
        process = self.start("speak", *TINY, "-", "--out", "-", "--format", "pcm")
        for _ in range(2):  # nothing follows the point, and the pipe stays open
            process.stdin.write("wʌn tˈu θɹˈi fˈɔɹ fˈIv sˈɪks sˈɛvən.".encode())
            process.stdin.flush()
            self.assertEqual(len(process.stdout.read(20000)), 20000)
        process.stdin.close()
        process.stdout.read()
        self.assertEqual(process.wait(120), 0, process.stderr.read())
        process.stdout.close()
        process.stderr.close()

    def test_bad_text_and_voices(self):
        self.check_fails(2, "nothing to say", "speak", *TINY, "", "--out", "x.wav")
        self.check_fails(2, "nothing to say", "speak", *TINY, "-", "--out", "x.wav")
        self.check_fails(2, "UTF-8", "speak", *TINY, "-", "--out", "x.wav", text=b"abc \xff\xfe\x00 def")
        model = TINY[:2]
        self.check_fails(3, "'nobody'", "speak", *model, "--phonemes", HELLO, "--voice", "nobody", "--out", "x.wav")
        self.check_fails(2, "weight", "speak", *model, "--phonemes", HELLO, "--voice", "a:b", "--out", "x.wav")
        self.check_fails(4, "bytes", "speak", *model, "--phonemes", HELLO, "--voice", self.voice_cut(),
                         "--out", "x.wav")
        self.check_fails(2, "0.25 to 4", "speak", *TINY, HELLO, "--speed", "9", "--out", "x.wav")
        self.check_fails(2, "threads", "speak", *TINY, HELLO, "--threads", "1000", "--out", "x.wav")

    def voice_cut(self):
        path = self.folder / "cut.bin"
        path.write_bytes((DATA / "kokoro/tiny_voice.bin").read_bytes()[:1000])
        return path

    def test_a_model_that_is_truncated_or_hostile(self):
        whole = (DATA / "kokoro/tiny.onnx").read_bytes()
        path = self.folder / "broken.onnx"
        voice = ["--voice", str(DATA / "kokoro/tiny_voice.bin"), "--phonemes", HELLO, "--out", "x.wav"]
        for content in (b"", b"\x08", whole[:100], whole[:len(whole) // 2], whole[:-1], os.urandom(5000), b"\xff" * 5000,
                        b"PK\x03\x04" + b"\xff" * 200):
            path.write_bytes(content)
            code, _, errors = self.run_it("speak", "--model", path, *voice)
            self.assertIn(code, (4, 5), errors)
            self.assertIn("broken.onnx", errors)
            self.assertEqual(list(self.out.iterdir()), [])
        self.check_fails(3, "gone.onnx", "speak", "--model", self.folder / "gone.onnx", *voice)

    def test_output_that_cannot_be_written(self):
        self.check_fails(7, "there is no folder", "speak", *TINY, HELLO, "--out", "nowhere/x.wav")
        self.check_fails(7, "No space left", "speak", *TINY, HELLO, "--out", "/dev/full")
        self.check_fails(2, "--times", "speak", *TINY, HELLO, "--out", "x.wav", "--times", "x.wav")
        self.check_fails(2, "standard output", "speak", *TINY, HELLO, "--out", "-", "--times", "-")
        self.check_fails(2, "names no format", "speak", *TINY, HELLO, "--out", "x.doc")

    def test_a_reader_that_goes_away(self):
        process = self.start("speak", *TINY, "-", "--out", "-")
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # it may have ended already
            process.stdin.write((HELLO + " ").encode() * 200)
            process.stdin.close()
        errors = process.stderr.read().decode()
        self.assertEqual(process.wait(120), 7, errors)
        self.assertIn("standard output", errors)
        process.stderr.close()

    def test_signals(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = self.start("speak", *TINY, "-", "--out", "x.wav")
            process.stdin.write((HELLO + " ").encode() * 50)
            process.stdin.flush()  # and more could come, so that it does not end by itself
            self.wait_for(lambda: list(self.out.iterdir()))  # it has begun to write
            process.send_signal(number)
            self.assertEqual(process.wait(120), status)
            self.assertEqual(list(self.out.iterdir()), [])
            process.communicate()

    def test_control_c_ends_a_benchmark(self):
        process = self.start("bench", "kernels", "--threads", "1")
        process.stdout.readline()  # the limits are measured, the kernels are next
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=500)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn(b"stopped", errors)

    def sound_system(self, set_up):
        """ALSA reads its set-up from a file of ours, so that the test is silent and the same on every machine."""
        path = self.folder / "asoundrc"
        path.write_text(set_up)
        return {"ALSA_CONFIG_PATH": str(path), "JACK_NO_START_SERVER": "1"}

    def test_no_loudspeaker_is_an_answer(self):
        none = self.sound_system("pcm.!default { type hw card 99 }\n")
        for more in ([], ["--play"], ["--play", "--out", "x.wav"]):
            code, _, errors = self.run_it("speak", *TINY, HELLO, *more, variables=none)
            self.assertEqual(code, 8, errors)
            self.assertRegex(errors, r"^syrinx: this machine has no loudspeaker.*write to a file instead.*\n$")
            self.assertEqual(list(self.out.iterdir()), [])

    def test_a_loudspeaker_hears_what_the_file_holds(self):
        recorder = self.sound_system('pcm.nowhere { type null }\npcm.!default { type file file "%s" format raw '
                                     'slave.pcm nowhere }\n' % (self.folder / "heard.raw"))
        code, _, errors = self.run_it("speak", *TINY, HELLO, "--play", "--out", "x.pcm", variables=recorder)
        self.assertEqual((code, errors), (0, ""))
        samples = (self.out / "x.pcm").stat().st_size // 2
        self.assertGreaterEqual((self.folder / "heard.raw").stat().st_size, 4 * samples)  # f32, silence around it


if __name__ == "__main__":
    unittest.main()
