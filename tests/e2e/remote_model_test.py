"""Pocket TTS from a hub of our own: configurations, weights and voices by hf://, and a model that was pulled."""
import os
import pathlib
import pty
import subprocess
import unittest

from hub import COMMIT, Hub
from program import BINARY, DATA, Program

POCKET = DATA / "pocket_tts"
ENGLISH = POCKET / "english"
TEXT = "Hello world."
CATALOGUE = """
name = "pocket-tts"
kind = "pocket-tts"
description = "A small Pocket TTS"
licence = "none"
default = "english"
[[group]]
role = "config"
files = [{ name = "config.yaml", text = '''{config}''' }]
[[group]]
role = "model"
choice = "cloning"
files = [{ name = "model.safetensors" }]
[[group.source]]
kind = "hub"
reference = "hf://o/gated/model.safetensors@{commit}"
[[group]]
role = "model"
choice = "without-cloning"
files = [{ name = "model-without-voice-cloning.safetensors" }]
[[group.source]]
kind = "hub"
reference = "hf://o/open/model.safetensors@{commit}"
[[group]]
role = "tokenizer"
files = [{ name = "tokenizer.json" }]
[[group.source]]
kind = "hub"
reference = "hf://o/open/tokenizer.json@{commit}"
[[group]]
role = "voice"
folder = "embeddings"
pick = ["alba.safetensors"]
files = [{ name = "alba.safetensors" }, { name = "jean.safetensors" }]
[[group.source]]
kind = "hub"
reference = "hf://o/open/{name}@{commit}"
[variants]
english = { about = "English" }
[values]
commit = "COMMIT"
config = \"\"\"
CONFIG\"\"\"
"""


def place(name, repository="open"):
    return f"hf://o/{repository}/{name}@{COMMIT}"


class Remote(Program):
    def setUp(self):
        super().setUp()
        self.yaml = (ENGLISH / "config.yaml").read_text()
        named = self.yaml.replace("../tokenizer.json", place("tokenizer.json"))
        self.hub = Hub({
            "model.safetensors": (ENGLISH / "model.safetensors").read_bytes(),
            "tokenizer.json": (POCKET / "tokenizer.json").read_bytes(),
            "alba.safetensors": (ENGLISH / "voice.safetensors").read_bytes(),
            "jean.safetensors": (ENGLISH / "voice.safetensors").read_bytes(),
            "config.yaml": named.replace(": model.safetensors", ": " + place("model.safetensors")).encode(),
            "gated.yaml": named.replace("weights_path: model.safetensors",
                                        f"weights_path: {place('model.safetensors', 'gated')}\n"
                                        f"weights_path_without_voice_cloning: {place('model.safetensors')}").encode(),
        })
        self.addCleanup(self.hub.close)

    def environment(self):
        environment = {key: value for key, value in super().environment().items()
                       if not key.startswith(("HF_", "HUGGING", "TRANSFORMERS_")) and "proxy" not in key.lower()}
        return environment | {"HF_ENDPOINT": self.hub.address(), "HF_HOME": str(self.folder / "hf")}

    def speak(self, *arguments, **options):
        code, output, errors = self.run_it("speak", TEXT, "--out", "-", "--format", "pcm", *arguments, **options)
        self.assertEqual(code, 0, errors)
        return output, errors

    def expected(self):
        return self.speak("--model", ENGLISH, "--voice", ENGLISH / "voice.safetensors")[0]

    def test_a_configuration_and_a_voice_by_reference(self):
        arguments = ["--model", place("config.yaml"), "--voice", place("alba.safetensors")]
        samples, errors = self.speak(*arguments)
        self.assertTrue(samples)
        self.assertEqual(samples, self.expected())
        self.assertIn("fetching " + place("model.safetensors"), errors)
        asked = len(self.hub.asked)
        self.assertEqual(self.speak(*arguments), (samples, ""))
        self.assertEqual(len(self.hub.asked), asked)
        self.assertEqual(self.speak(*arguments, variables={"HF_HUB_OFFLINE": "1"})[0], samples)

    def test_neighbours_of_a_configuration_come_with_it(self):
        model, codec = DATA / "qwen_tts/custom_voice", DATA / "qwen_tts/speech_tokenizer"
        self.hub.files = {file.name: file.read_bytes() for file in model.iterdir()}
        self.hub.files |= {f"speech_tokenizer/{file.name}": file.read_bytes() for file in codec.iterdir()}
        arguments = ["--model", place("config.json"), "--max-seconds", "0.4"]
        samples, errors = self.speak(*arguments)
        self.assertIn("fetching " + place("speech_tokenizer/model.safetensors"), errors)
        self.assertEqual(samples, self.speak("--model", model, "--max-seconds", "0.4")[0])
        asked = len(self.hub.asked)
        self.assertEqual(self.speak(*arguments)[0], samples)
        self.assertEqual(len(self.hub.asked), asked)

    def seen_on_a_terminal(self, *arguments):
        """What speak shows where its standard error is a terminal."""
        ours, its = pty.openpty()
        process = subprocess.Popen([BINARY, "speak", TEXT, "--out", "x.wav", *map(str, arguments)], stderr=its,
                                   stdout=subprocess.DEVNULL, cwd=self.out, env=self.environment())
        os.close(its)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        self.assertEqual(process.wait(timeout=120), 0, seen)
        return seen.decode()

    def test_a_bar_while_it_fetches_on_a_terminal_and_nowhere_else(self):
        arguments = ["--model", place("config.yaml"), "--voice", place("alba.safetensors")]
        size = f"{len(self.hub.files['model.safetensors']) / 1e3:.1f} kB"
        seen = self.seen_on_a_terminal(*arguments)
        self.assertIn("fetching " + place("model.safetensors"), seen)
        self.assertIn(f"] 100 %  {size} / {size}", seen)
        self.assertNotIn("fetching", self.seen_on_a_terminal(*arguments), "it is here now")
        for quiet in (["--json"], []):
            home = {"SYRINX_HOME": str(self.folder / ("new" + "".join(quiet)))}
            _, errors = self.speak(*arguments, *quiet, variables=home)
            self.assertNotIn("[#", errors)
            self.assertEqual("fetching" in errors, not quiet)

    def test_a_local_configuration_that_names_places(self):
        folder = self.folder / "mine"
        folder.mkdir()
        (folder / "config.yaml").write_bytes(self.hub.files["config.yaml"])
        # What lies beside it comes before what is elsewhere.
        (folder / "model.safetensors").write_bytes(self.hub.files["model.safetensors"])
        samples, _ = self.speak("--model", folder, "--voice", ENGLISH / "voice.safetensors")
        self.assertEqual(samples, self.expected())
        self.assertEqual({path.rsplit("/", 1)[1] for _, path in self.hub.asked}, {"tokenizer.json"})

    def test_what_lies_beside_a_configuration_elsewhere_is_not_guessed(self):
        self.hub.files["beside.yaml"] = self.hub.files["config.yaml"].replace(
            place("tokenizer.json").encode(), b"tokenizer.json")
        self.check_fails(3, "names 'tokenizer.json'", "speak", TEXT, "--out", "x.wav", "--json", "--model",
                         place("beside.yaml"), "--voice", ENGLISH / "voice.safetensors")

    def test_gated_weights_are_not_replaced_by_others(self):
        arguments = ["speak", TEXT, "--out", "x.wav", "--model", place("gated.yaml"), "--voice",
                     ENGLISH / "voice.safetensors", "--json"]
        self.check_fails(8, f"accept them at {self.hub.address()}/o/gated", *arguments)
        self.assertNotIn(("GET", f"/o/open/resolve/{COMMIT}/model.safetensors"), self.hub.asked)
        code, _, errors = self.run_it(*arguments, variables={"HF_TOKEN": "hf_good"})
        self.assertEqual(code, 0, errors)

    def test_what_is_not_there(self):
        out = ["--out", "x.wav", "--json"]
        self.check_fails(3, "has no file 'none.yaml'", "speak", TEXT, "--model", place("none.yaml"), *out)
        self.check_fails(2, "cannot be read", "speak", TEXT, "--model", "file:///etc/passwd", *out)
        self.check_fails(3, "has no file 'none.wav'", "speak", TEXT, "--model", ENGLISH, "--voice", place("none.wav"),
                         *out)
        self.check_fails(3, "'pocket-tts' is not installed; fetch it with `syrinx pull pocket-tts`", "speak", TEXT,
                         "--model", "pocket-tts", *out)

    def pull(self, *arguments):
        (self.folder / "pocket.toml").write_text(
            CATALOGUE.replace("COMMIT", COMMIT).replace(
                "CONFIG", self.yaml.replace("../tokenizer.json", "tokenizer.json").replace(
                    "weights_path: model.safetensors", "weights_path: model.safetensors\n"
                    "weights_path_without_voice_cloning: model-without-voice-cloning.safetensors").replace(
                        "’", "\\u2019").replace("‘", "\\u2018")))
        return self.run_it("pull", "pocket-tts", "--catalogue", self.folder / "pocket.toml", *arguments)

    def test_what_was_pulled_speaks_by_its_name(self):
        code, output, errors = self.pull()
        self.assertEqual((code, output.count(b"accept")), (8, 0), errors)
        self.assertIn("--without-cloning", errors)
        code, output, errors = self.pull("--without-cloning")
        self.assertEqual(code, 0, errors)
        self.assertIn(b"pocket-tts:english is ready", output)
        samples, _ = self.speak("--model", "pocket-tts")
        self.assertEqual(samples, self.expected())
        self.assertEqual(self.speak("--model", "pocket-tts:english", "--voice", "alba")[0], samples)
        self.check_fails(5, "without voice cloning", "speak", TEXT, "--out", "x.wav", "--model", "pocket-tts", "--voice",
                         POCKET / "voice.wav")
        code, _, errors = self.pull("--with-cloning", "--voices", "jean")
        self.assertEqual(code, 8, errors)
        (self.folder / "hf").mkdir()
        (self.folder / "hf" / "token").write_text("hf_good\n")
        code, _, errors = self.pull("--with-cloning", "--voices", "jean")
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.speak("--model", "pocket-tts", "--voice", "jean")[0], samples)
        self.assertTrue(self.speak("--model", "pocket-tts", "--voice", POCKET / "voice.wav")[0])
        folder = pathlib.Path(self.folder / "home/data/models/pocket-tts@english")
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["config.yaml", "embeddings", "installed", "model.safetensors", "tokenizer.json"])


if __name__ == "__main__":
    unittest.main()
