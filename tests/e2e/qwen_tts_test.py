"""Qwen3-TTS through the built program, with the small random checkpoints."""
import json
import os
import threading
import unittest
import wave

from hub import Hub
from program import DATA, FIGURES, cloning_qwen
from server import LONG, Server

QWEN = DATA / "qwen_tts"
CUSTOM = QWEN / "custom_voice"
SHORT = ("--max-seconds", "0.8")


class Qwen(Server):
    def samples(self, *arguments, model=CUSTOM, text="Hello there.", limits=SHORT):
        code, output, errors = self.run_it("speak", text, "--model", model, "--out", "-", "--format", "pcm", *limits, *arguments)
        self.assertEqual(code, 0, errors)
        return output

    def refuses(self, status, words, *arguments, model=CUSTOM):
        self.check_fails(status, words, "speak", "Hello.", "--model", model, "--out", "x.wav", *arguments)

    def test_speech_is_written_with_its_figures(self):
        code, output, errors = self.run_it("speak", "Hello.", "--model", CUSTOM, "--out", self.out / "x.wav", "--json", *SHORT)
        self.assertEqual(code, 0, errors)
        figures = json.loads(output)
        self.assertEqual(list(figures), FIGURES)
        self.assertEqual((figures["voice"], figures["precision"]), ("ryan", "int8"))
        with wave.open(str(self.out / "x.wav")) as sound:
            self.assertEqual((sound.getframerate(), sound.getnframes() % 1920), (24000, 0))

    def test_log_tells_of_each_piece(self):
        text = "Hello there, old friend. [pause:80ms] And on it went, and on."
        speak = ("speak", text, "--model", CUSTOM, "--out", self.out / "x.wav", "--json", *SHORT)
        code, _, errors = self.run_it(*speak, variables={"SYRINX_LOG": "debug"})
        self.assertEqual(code, 0, errors)
        for piece in ("1", "2"):
            self.assertRegex(errors, rf"syrinx: debug: piece {piece}: \d+ tokens in [\d.]+ s of sound, [\d.]+ a second.*, -?[\d.]+ dBFS")
        self.assertNotIn("debug", self.run_it(*speak)[2])
        code, _, errors = self.run_it(*speak, variables={"SYRINX_LOG": "loud"})
        self.assertEqual(code, 0, errors)
        self.assertIn("SYRINX_LOG: log level 'loud' is unknown; choose debug", errors)

    def test_options_change_the_speech(self):
        plain = self.samples("--seed", "3")
        self.assertEqual(self.samples("--seed", "3"), plain)
        self.assertNotEqual(self.samples("--seed", "4"), plain)
        for arguments in (("--voice", "Vivian"), ("--language", "de"), ("--temperature", "0.2"), ("--top-k", "1"),
                          ("--subtalker-temperature", "0"), ("--text-layout", "streaming"), ("--precision", "f32")):
            self.assertNotEqual(self.samples("--seed", "3", *arguments), plain, arguments)
        told = ("--instructions", "A low voice.")
        self.assertNotEqual(self.samples(*told, model=QWEN / "voice_design"), self.samples(model=QWEN / "voice_design"))

    def test_lacking_options_are_refused(self):
        self.refuses(3, "there is no voice 'nobody'; this checkpoint has", "--voice", "nobody")
        self.refuses(2, "this checkpoint speaks auto, chinese", "--language", "klingon")
        self.refuses(5, "has no instructions; leave them out", "--instructions", "Sadly.")
        self.refuses(5, "Qwen3-TTS has no --speed", "--speed", "2")
        self.refuses(5, "instructions tell it who speaks", "--voice", "ryan", model=QWEN / "voice_design")
        self.refuses(3, "no voice was named", model=QWEN / "base")

    def test_recordings_are_cloned(self):
        model = cloning_qwen(self.folder / "base")
        ann, bob = (self.samples("--voice", name, model=model) for name in ("ann", "bob"))
        self.assertNotEqual(ann, bob)
        voice = self.folder / "bob.safetensors"
        code, _, errors = self.run_it("voices", "export", "--model", model, "bob", voice)
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.samples("--voice", voice, "--precision", "f32", model=model),
                         self.samples("--voice", "bob", "--precision", "f32", model=model))

    def test_text_is_spoken_while_it_arrives(self):
        model = cloning_qwen(self.folder / "base")
        speaker = self.start("speak", "-", "--model", model, "--voice", "ann", "--out", "-", "--format", "pcm")
        speaker.stdin.write(b"The river had risen overnight and nobody ")
        speaker.stdin.flush()
        begin = speaker.stdout.read(3840)  # comes before the sentence has ended
        rest, errors = speaker.communicate(b"in the town knew why.", timeout=120)
        self.assertEqual((speaker.returncode, len(begin)), (0, 3840), errors)
        whole = self.samples("--voice", "ann", model=model, limits=(),
                             text="The river had risen overnight and nobody in the town knew why.")
        self.assertTrue(begin + rest == whole, (len(begin + rest), len(whole)))

    def test_carried_voice_is_an_option_of_each_text(self):
        model = cloning_qwen(self.folder / "base")
        self.start_server(model=["--speech-model", model, "--recognition-model", "", "--voice", "ann"])
        text = "The river had risen overnight. " * 4
        plain, carried = (self.spoken(text, seed=3, max_seconds=0.4, **more) for more in ({}, {"carry_seconds": 8}))
        self.assertGreater(len(carried), len(plain))  # in pieces that are short enough to be carried
        self.check_refused(400, None, "carry_seconds", "POST", "/v1/audio/speech", {"input": "Hello.", "carry_seconds": 31})

    def test_model_is_listed_and_described(self):
        code, output, errors = self.run_it("voices", "--model", CUSTOM, "--json")
        self.assertEqual(code, 0, errors)
        voices = {voice["name"]: voice for voice in json.loads(output)}
        self.assertEqual((len(voices), voices["sohee"]["language_code"], voices["ryan"]["default"]), (9, "ko", True))
        for path, words in ((CUSTOM, b"kind: custom_voice"), (CUSTOM / "model.safetensors", b"code_predictor_numbers: "),
                            (QWEN / "speech_tokenizer/config.json", b"frame_samples: 1920")):
            code, output, errors = self.run_it("inspect", path)
            self.assertEqual(code, 0, errors)
            self.assertIn(b"model: qwen-tts", output)
            self.assertIn(words, output)
        code, output, errors = self.run_it("doctor", "--quick", "--model", CUSTOM)
        self.assertIn(b"codec      ", output, errors)

    def test_published_checkpoint_is_pulled_and_speaks(self):
        files = {path.name: path.read_bytes() for path in CUSTOM.iterdir() if path.is_file()}
        files |= {f"speech_tokenizer/{path.name}": path.read_bytes() for path in (QWEN / "speech_tokenizer").iterdir()}
        hub = Hub(files)
        self.addCleanup(hub.close)
        variables = {"HF_ENDPOINT": hub.address(), "HF_HOME": str(self.folder / "hf")}
        code, _, errors = self.run_it("pull", "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice", variables=variables)
        self.assertEqual(code, 0, errors)
        place = "/Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice/resolve/0c0e3051f131929182e2c023b9537f8b1c68adfe/"
        self.assertEqual({path.partition(place)[2] for _, path in hub.asked}, {
            "config.json", "generation_config.json", "vocab.json", "merges.txt", "tokenizer_config.json", "model.safetensors",
            "speech_tokenizer/config.json", "speech_tokenizer/model.safetensors"})
        self.assertEqual(self.samples(model="qwen3-tts:1.7b-customvoice"), self.samples())
        self.check_fails(3, "syrinx pull qwen3-tts", "speak", "Hello.", "--model", "qwen3-tts", "--out", "x.wav")

    def test_server_speaks_to_several_at_once(self):
        self.start_server(model=["--speech-model", CUSTOM, "--recognition-model", ""])
        model = next(each for each in json.loads(self.request("GET", "/v1/models")[2])["data"] if each["task"] == "text-to-speech")
        self.assertEqual(model["languages"][:2], ["zh", "en"])
        self.assertIn("instructions", model["unsupported_parameters"])
        self.assertNotIn("top_k", model["unsupported_parameters"])

        def speak(**fields):
            return self.request("POST", "/v1/audio/speech", {"input": "Hello there.", "response_format": "pcm", "max_seconds": 0.8, **fields})

        asked = [{"seed": 1}, {"seed": 2, "voice": "Vivian"}, {"seed": 3, "voice": "alloy", "language": "de-DE"}, {"seed": 4, "top_k": 5}]
        alone = [speak(**fields) for fields in asked]
        self.assertEqual([status for status, _, _ in alone], [200] * len(asked))
        together = [None] * len(asked)

        def ask(at):
            together[at] = speak(**asked[at])[2]

        threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(asked))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, [sound for _, _, sound in alone])
        self.assertEqual(speak(seed=1)[2], self.samples("--seed", "1"))
        self.assertEqual(speak(instructions="Sadly.")[1]["X-Syrinx-Ignored"], "instructions")
        self.check_refused(400, None, "language", "POST", "/v1/audio/speech", {"input": "Hello.", "language": "nl"})
        self.check_refused(400, None, "top_k", "POST", "/v1/audio/speech", {"input": "Hello.", "top_k": -3})

    @staticmethod
    def last_of(connection, ends):
        """Notes the end of an answer, orderly or cut; none where it does not come."""
        try:
            while connection.recv(65536):
                pass
            ends.append("closed")
        except TimeoutError:
            pass
        except OSError:
            ends.append("cut")

    def test_full_server_ends_behind_sigterm(self):
        self.start_server("--speech-slots", "32", "--max-connections-per-address", "64", "--drain-timeout-s", "0.2",
                          "--stalled-reader-s", "600", "--threads", "1",
                          model=["--speech-model", CUSTOM, "--recognition-model", ""], start_new_session=True)
        group = self.server.pid
        speakers = [self.connect(receive_bytes=4096) for _ in range(32)]
        for number, speaker in enumerate(speakers):
            self.addCleanup(speaker.close)
            self.ask(speaker, LONG * 8, response_format="pcm", seed=number)
        for speaker in speakers:
            self.assertTrue(speaker.recv(100).startswith(b"HTTP/1.1 200 "))
            speaker.settimeout(60)
        self.assertEqual(self.free_slots(), 0, self.last_lines())
        self.server.terminate()
        ends = []
        threads = [threading.Thread(target=self.last_of, args=(speaker, ends)) for speaker in speakers]
        for thread in threads:
            thread.start()
        self.end_server(terminate=False)
        for thread in threads:
            thread.join()
        self.assertEqual(len(ends), len(speakers), ends)
        with self.assertRaises(ProcessLookupError):
            os.killpg(group, 0)

    def test_signal_while_voice_is_warmed_up_ends_server(self):
        server = self.start("serve", "--port", "0", "--speech-model", CUSTOM, "--recognition-model", "")
        packed = self.folder / "home/cache/packed"
        self.wait_for(lambda: any(packed.rglob("qwen-tts-*.packed")))
        server.terminate()
        _, errors = server.communicate(timeout=120)
        self.assertEqual(server.returncode, 0, errors)


if __name__ == "__main__":
    unittest.main()
