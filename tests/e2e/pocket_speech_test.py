"""Pocket TTS through the built program, with the small random checkpoints."""
import json
import os
import shutil
import signal
import struct
import unittest
import wave

from program import DATA, FIGURES, TINY, Program

POCKET = DATA / "pocket_tts"
ENGLISH = POCKET / "english"
VOICE = ENGLISH / "voice.safetensors"
TEXT = "Hello world, it costs 3.50 dollars. How are you today?"


def riff(seconds, rate_hz=8000, sample=lambda i: (i * 37) % 200 - 100):
    """A WAV file of 16 bits."""
    data = b"".join(struct.pack("<h", sample(i)) for i in range(int(seconds * rate_hz)))
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, 1, 1, rate_hz, 2 * rate_hz, 2, 16) + b"data" + struct.pack("<I", len(data)) +
            data)


def reference_array(name, kind):
    """Of the maker's arrays for ENGLISH, as numbers of that struct type."""
    data = (ENGLISH / "reference.safetensors").read_bytes()
    size, = struct.unpack_from("<Q", data)
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return [value for value, in struct.iter_unpack("<" + kind, data[8 + size + begin:8 + size + end])]


class Pocket(Program):
    def speak(self, *arguments, text=b"", model=ENGLISH, voice=VOICE):
        return self.run_it("speak", "--model", model, "--voice", voice, *arguments, text=text)

    def samples(self, *arguments, **options):
        code, output, errors = self.speak("--out", "-", "--format", "pcm", *arguments, **options)
        self.assertEqual(code, 0, errors)
        return output

    def refuses(self, status, words, *arguments, model=ENGLISH, voice=VOICE, text=b""):
        self.check_fails(status, words, "speak", "--model", model, "--voice", voice, "--out", "x.wav", *arguments,
                         text=text)

    def checkpoint(self, replaced="", by="", weights=None):
        """A copy of the english checkpoint whose configuration, or weights, are another."""
        folder = self.folder / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(POCKET / "tokenizer.json", folder)
        yaml = (ENGLISH / "config.yaml").read_text().replace("../tokenizer.json", "tokenizer.json")
        self.assertIn(replaced, yaml)
        (folder / "config.yaml").write_text(yaml.replace(replaced, by, 1))
        if weights is None:
            weights = (ENGLISH / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(weights)
        return folder


class Speaking(Pocket):
    def test_every_architecture_speaks_after_a_stored_and_a_cloned_voice(self):
        models = sorted(path.parent for path in POCKET.glob("*/config.yaml"))
        self.assertEqual(len(models), 8)
        for model in models:
            for voice in (model / "voice.safetensors", POCKET / "voice.wav"):
                code, output, errors = self.speak(TEXT, "--out", "x.wav", "--json", model=model, voice=voice)
                self.assertEqual((code, errors), (0, ""), (model, voice))
                figures = json.loads(output)
                self.assertEqual(list(figures), FIGURES)
                self.assertEqual(figures["voice"], str(voice))
                with wave.open(str(self.out / "x.wav")) as sound:
                    self.assertEqual(sound.getframerate(), 24000)
                    self.assertAlmostEqual(sound.getnframes() / 24000, figures["audio_seconds"], places=6)
                    self.assertEqual(sound.getnframes() % 1920, 0)

    def test_the_makers_samples_after_the_makers_voice_file(self):
        """Without noise, to the limit of steps, as the maker's package spoke it (generate.2 of reference.json)."""
        output = self.samples("Hi.", "--precision", "f32", "--temperature", "0", "--eos-threshold", "1e6")
        ours = [value for value, in struct.iter_unpack("<h", output)]
        self.assertEqual(len(ours), 42 * 1920)
        theirs = reference_array("generate.2.samples", "f")
        rows = reference_array("generate.2.samples.rows", "i")
        self.assertGreater(max(map(abs, theirs)), 0.1)
        for row, sample in zip(rows, theirs, strict=True):
            # 16 bits: two steps for rounding, beside the parity of f32.
            self.assertLessEqual(abs(ours[row] / 32768 - max(-1, min(1, sample))), 2 / 32768 + 1e-4, row)

    def test_a_checkpoint_is_a_folder_a_configuration_or_weights(self):
        first = self.samples(TEXT)
        for model in (ENGLISH / "config.yaml", ENGLISH / "model.safetensors"):
            self.assertEqual(self.samples(TEXT, model=model), first)

    def test_settings(self):
        first = self.samples(TEXT, "--seed", "7")
        self.assertEqual(self.samples(TEXT, "--seed", "7"), first)
        self.assertEqual(self.samples(text=TEXT.encode()), self.samples(TEXT))
        for other in (["--seed", "8"], ["--seed", "7", "--temperature", "0.9"], ["--seed", "7", "--steps", "2"],
                      ["--seed", "7", "--noise-clamp", "0.2"], ["--seed", "7", "--max-tokens", "10"],
                      ["--seed", "7", "--precision", "f32"]):
            self.assertNotEqual(self.samples(TEXT, *other), first, other)
        short = self.samples("Hello.", "--eos-threshold", "-1000", "--frames-after-eos", "1")
        self.assertEqual(len(short), 7 * 1920 * 2)
        code, _, errors = self.speak("Hello.", "--eos-threshold", "1000", "--out", "x.wav")
        self.assertEqual(code, 0)
        self.assertIn("1 of 1 chunks of the text were cut", errors)

    def test_text_as_it_arrives(self):
        process = self.start("speak", "--model", ENGLISH, "--voice", VOICE, "-", "--out", "-", "--format", "pcm")
        for _ in range(2):  # nothing follows the point, and the pipe stays open
            process.stdin.write(b"This is all of it for now.")
            process.stdin.flush()
            self.assertEqual(len(process.stdout.read(6 * 3840)), 6 * 3840)
        output, errors = process.communicate(b" The end.")
        self.assertEqual((process.returncode, errors), (0, b""))
        self.assertGreater(len(output), 6 * 3840)

    def test_pauses_and_voices_in_the_text(self):
        def say(text, *more, voice=VOICE):
            return self.samples(text, "--temperature", "0", *more, voice=voice)

        older = ENGLISH / "voice_older.safetensors"
        cast = ["--cast", f"ann={POCKET / 'voice.wav'}", "--cast", f"bob={older}"]
        dialogue = "Hello there. [pause:0.5s]\n[voice: ann] How are you?\n[voice: bob] And you?\n[voice:] Good."
        expected = (say("Hello there.") + bytes(2 * 12000) + say("How are you?", voice=POCKET / "voice.wav") +
                    say("And you?", voice=older) + say("Good."))
        self.assertEqual(say(dialogue, *cast), expected)
        code, output, errors = self.speak("--out", "-", "--format", "pcm", "--temperature", "0", *cast, "-",
                                          text=dialogue.encode())
        self.assertEqual(code, 0, errors)
        self.assertEqual(output, expected)
        self.assertNotEqual(say(r"Hello \[voice: carl]"), say("Hello"))
        self.assertEqual(say(r"Hello \[voice: carl]"), say("Hello  [voice: carl]", "--plain"))
        self.refuses(3, "line 2 of the text: there is no voice 'carl'", "Hello.\n[voice: carl] Hello.", *cast)
        self.refuses(2, "opens no files", f"[voice: {VOICE}] Hello.")
        self.refuses(2, "is not a pause", "Hello. [pause:1h] Hello.")
        self.refuses(2, "give NAME=FILE", "Hello.", "--cast", "ann")
        self.refuses(3, "nobody.wav", "Hello.", "--cast", "ann=nobody.wav")

    def test_marks_sound_alike_in_arguments_and_standard_input(self):
        options = ["--temperature", "0", "--cast", f"ann={VOICE}"]
        for text in ("[voice: ann] Hello. [pause:100ms]", "[Hello, there]", r"\[pause:1s]"):
            for more in ([], ["--plain"]):
                self.assertEqual(self.samples(text, *options, *more),
                                 self.samples(*options, *more, text=text.encode()), (text, more))
        self.refuses(3, "there is no voice 'nobody'", "[voice: nobody] Hello. [pause:1s]")
        self.refuses(2, "nothing to say", "[pause:1s]")

    def test_a_voice_that_only_cast_gives(self):
        expected = self.samples("Hello.")
        for arguments in (["[voice: ann] Hello."], ["Hello.", "--voice", "ann"]):
            code, output, errors = self.run_it("speak", "--model", ENGLISH, "--cast", f"ann={VOICE}", "--out", "-",
                                               "--format", "pcm", *arguments)
            self.assertEqual((code, errors), (0, ""))
            self.assertEqual(output, expected)

    def test_other_formats(self):
        for kind in ("flac", "opus", "mp3"):
            code, _, errors = self.speak(TEXT, "--out", "x." + kind)
            self.assertEqual(code, 0, errors)
            self.assertGreater((self.out / ("x." + kind)).stat().st_size, 500)

    def test_control_c(self):
        process = self.start("speak", "--model", ENGLISH, "--voice", VOICE, "-", "--out", "x.wav")
        process.stdin.write(TEXT.encode() * 2000)
        process.stdin.flush()
        self.wait_for(lambda: list(self.out.iterdir()))  # it has begun to write
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(120), 130)
        self.assertEqual(list(self.out.iterdir()), [])
        process.communicate()

    def test_options_of_the_other_family(self):
        for option, *value in (("speed", "1.5"), ("phonemes",), ("noise",), ("dictionary", "words.txt"), ("lexicon", "folder")):
            self.refuses(5, f"Pocket TTS has no --{option}; leave it out, or take kokoro", TEXT, f"--{option}", *value)
        self.refuses(5, "--times", TEXT, "--times", "x.times")
        for option in ("--temperature", "--noise-clamp", "--eos-threshold", "--frames-after-eos", "--steps",
                       "--max-tokens"):
            self.check_fails(5, "leave it out, or take pocket-tts", "speak", *TINY, "a", "--out", "x.wav", option, "5")

    def test_settings_out_of_range(self):
        for option, value, words in (("--temperature", "-1", "temperature"), ("--temperature", "101", "temperature"),
                                     ("--noise-clamp", "0", "clamp"), ("--steps", "65", "64"), ("--steps", "-1", "64"),
                                     ("--frames-after-eos", "-5", "frames"), ("--max-tokens", "201", "200"),
                                     ("--max-tokens", "-1", "200"), ("--eos-threshold", "inf", "threshold")):
            self.refuses(2, words, TEXT, option + "=" + value)


class BadInput(Pocket):
    def test_texts(self):
        for text in (b"", b" \n\t ", "😀🎉👍".encode(), b"\x01\x02\x7f", "这是一个句子。".encode(), b"... !?"):
            self.refuses(2, "nothing to say", "-", text=text)
        self.refuses(2, "UTF-8", "-", text=b"abc \xff\xfe def")
        code, _, errors = self.speak("Hello.\n\n" + "😀" * 40 + ".", "--out", "x.wav")
        self.assertEqual(code, 0, errors)
        self.assertIn("cannot be spoken and were left out", errors)

    def test_a_megabyte_without_a_mark_begins_at_once(self):
        process = self.start("speak", "--model", ENGLISH, "--voice", VOICE, "-", "--out", "-", "--format", "pcm")
        process.stdin.write(b"something " * 100000)
        process.stdin.close()
        self.assertEqual(len(process.stdout.read(100000)), 100000)
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        self.assertIn(process.wait(120), (130, 7))
        process.stderr.close()

    def test_checkpoints(self):
        whole = (ENGLISH / "model.safetensors").read_bytes()
        size = struct.unpack("<Q", whole[:8])[0]
        header = json.loads(whole[8:8 + size])

        def with_header(change):
            changed = json.loads(json.dumps(header))
            change(changed)
            text = json.dumps(changed).encode()
            return struct.pack("<Q", len(text)) + text + whole[8 + size:]

        missing = "flow_lm.transformer.layers.1.linear1.weight"
        for name in (missing, "mimi.quantizer.output_proj.weight"):
            self.refuses(4, name, TEXT, model=self.checkpoint(weights=with_header(lambda h, n=name: h.pop(n))))
        self.refuses(4, missing, TEXT, model=self.checkpoint(
            weights=with_header(lambda h: h[missing].update(shape=h[missing]["shape"][::-1]))))
        for content in (b"", whole[:7], whole[:100], whole[:-1], os.urandom(5000), b"\xff" * 5000):
            model = self.checkpoint(weights=content)
            code, _, errors = self.speak(TEXT, "--out", "x.wav", model=model)
            self.assertIn(code, (4, 6), errors)
            self.assertIn("model.safetensors", errors)
            self.assertEqual(list(self.out.iterdir()), [])
        self.refuses(4, "flow_lm.transformer.layers.2", TEXT, model=self.checkpoint("num_layers: 2", "num_layers: 3"))
        self.refuses(4, "400 pieces", TEXT, model=self.checkpoint("n_bins: 400", "n_bins: 401"))
        self.refuses(3, "gone.safetensors", TEXT, model=self.checkpoint("model.safetensors", "gone.safetensors"))
        os.environ["HF_HUB_OFFLINE"] = "1"
        self.refuses(8, "hf://kyutai/pocket-tts/x.safetensors", TEXT,
                     model=self.checkpoint("model.safetensors", "hf://kyutai/pocket-tts/x.safetensors"))
        self.refuses(8, "hf://kyutai/pocket-tts/config.yaml", TEXT, model="hf://kyutai/pocket-tts/config.yaml")
        self.refuses(8, "hf://kyutai/tts-voices/x.wav", TEXT, voice="hf://kyutai/tts-voices/x.wav")
        del os.environ["HF_HUB_OFFLINE"]
        folder = self.checkpoint()
        (folder / "config.yaml").write_text("model_type: whisper\narchitectures: [Whisper]\n")
        self.refuses(5, "whisper", TEXT, model=folder)
        (folder / "config.yaml").unlink()
        self.refuses(3, "holds no", TEXT, model=folder)

    def test_voices(self):
        self.refuses(3, "'nobody'", TEXT, voice="nobody")
        self.refuses(3, "gone.wav", TEXT, voice="./gone.wav")
        self.refuses(5, "use a voice made for", TEXT, voice=POCKET / "english_7m/voice.safetensors")
        self.refuses(5, "use a voice made for", TEXT, voice=POCKET / "english_24l/voice.safetensors")
        self.refuses(5, "config.yaml", TEXT, voice=ENGLISH / "config.yaml")
        recordings = {"short": riff(0.2), "silent": riff(3, sample=lambda i: 0), "cut": riff(2)[:-1000]}
        for name, content in recordings.items():
            path = self.folder / (name + ".wav")
            path.write_bytes(content)
            code, _, errors = self.speak(TEXT, "--out", "x.wav", voice=path)
            self.assertIn(code, (2, 4), (name, errors))
            self.assertIn(name + ".wav", errors)
            self.assertEqual(errors.count("\n"), 1)
            self.assertEqual(list(self.out.iterdir()), [])
        hours = self.folder / "hours.wav"
        with open(hours, "wb") as file:  # three hours, of which the disk holds nothing
            size = 3 * 3600 * 8000 * 2
            file.write(b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " +
                       struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data" + struct.pack("<I", size))
            file.truncate(44 + size)
        self.refuses(6, "hours.wav", TEXT, voice=hours)
        self.check_fails(6, "hours.wav", "voices", "export", "--model", ENGLISH, hours, "x.safetensors")

    def test_output_that_cannot_be_written(self):
        speak = ["speak", "--model", ENGLISH, "--voice", VOICE, TEXT, "--out"]
        self.check_fails(7, "No space left", *speak, "/dev/full")
        self.check_fails(7, "no folder", *speak, "nowhere/x.wav")
        for place in ("/dev/full", "nowhere/x.safetensors"):
            self.check_fails(7, place, "voices", "export", "--model", ENGLISH, POCKET / "voice.wav", place)
        self.check_fails(3, "gone.wav", "voices", "export", "--model", ENGLISH, "gone.wav", "x.safetensors")
        self.check_fails(5, "Kokoro", "voices", "export", *TINY[:2], POCKET / "voice.wav", "x.safetensors")


class Voices(Pocket):
    def test_export_list_and_speak_by_name(self):
        model = self.checkpoint()
        (model / "voices").mkdir()
        code, output, errors = self.run_it("voices", "--model", model)
        self.assertEqual((code, output), (0, b""))
        self.assertIn("no voices lie in", errors)
        cloned = self.samples(TEXT, "--precision", "f32", model=model, voice=POCKET / "voice.wav")
        code, output, errors = self.run_it("voices", "export", "--model", model, POCKET / "voice.wav",
                                           model / "voices/me.safetensors")
        self.assertEqual((code, output, errors), (0, b"", ""))
        self.assertEqual(self.samples(TEXT, "--precision", "f32", model=model, voice="me"), cloned)
        shutil.copy(POCKET / "voice.wav", model / "voices/alba.wav")
        code, output, _ = self.run_it("voices", "--model", model)
        self.assertEqual(output.decode().split("\n")[:2], ["alba            recording, the default", "me              exported"])
        code, output, _ = self.run_it("voices", "--model", model, "--names")
        self.assertEqual(output, b"alba\nme\n")
        code, output, _ = self.run_it("voices", "--model", model, "--json")
        listed = json.loads(output)
        self.assertEqual([(voice["name"], voice["kind"], voice["default"]) for voice in listed],
                         [("alba", "recording", True), ("me", "exported", False)])
        code, output, errors = self.run_it("speak", "--model", model, TEXT, "--out", "x.wav", "--json")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(json.loads(output)["voice"], "alba")

    def test_an_installed_model_by_its_name(self):
        installed = self.folder / "home/data/models/pocket-tts@english"
        installed.parent.mkdir(parents=True)
        self.check_fails(3, "syrinx pull pocket-tts", "speak", "--model", "pocket-tts", TEXT, "--out", "x.wav")
        self.checkpoint().rename(installed)
        (installed / "embeddings").mkdir()
        shutil.copy(VOICE, installed / "embeddings/alba.safetensors")
        expected = self.samples(TEXT)
        for name in ("pocket-tts", "pocket-tts:english"):
            code, output, errors = self.run_it("speak", "--model", name, TEXT, "--out", "-", "--format", "pcm")
            self.assertEqual((code, errors), (0, ""))
            self.assertEqual(output, expected)

    def test_doctor_and_inspect(self):
        code, output, errors = self.run_it("doctor", "--quick", "--model", ENGLISH)
        self.assertIn(b"loads in", output, errors)
        code, output, _ = self.run_it("inspect", ENGLISH)
        self.assertEqual(code, 0)
        self.assertIn(b"model: pocket-tts\n", output)
        code, output, _ = self.run_it("inspect", VOICE, "--json")
        self.assertEqual(json.loads(output)["facts"]["voice_positions"], "7")


if __name__ == "__main__":
    unittest.main()
