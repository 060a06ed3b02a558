"""`syrinx serve` asked by clients of others, unmodified: OpenAI's Python package and curl."""
import asyncio
import io
import json
import subprocess
import unittest
import wave

import openai

from server import Server


class OpenAi(Server):
    def setUp(self):
        super().setUp()
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        self.start_server("--api-key-file", keys)
        self.base = f"http://{self.host}:{self.port}/v1"
        self.client = openai.OpenAI(base_url=self.base, api_key="secret", max_retries=0)

    def tearDown(self):
        self.client.close()
        super().tearDown()

    def test_speech_streams(self):
        with self.client.audio.speech.with_streaming_response.create(model="tts-1", voice="alloy", input="Hello there.",
                                                                    response_format="pcm") as reply:
            parts = list(reply.iter_bytes(1920 * 2))
        self.assertGreater(len(parts), 1)
        whole = self.client.audio.speech.create(model="english", voice="ann", input="Hello there.", response_format="pcm")
        self.check_same(b"".join(parts), whole.content)
        sound = self.client.audio.speech.create(model="english", voice="ann", input="Hello there.", response_format="wav",
                                                extra_body={"stream": False}).content
        with wave.open(io.BytesIO(sound)) as file:
            self.assertEqual((file.getframerate(), file.getnchannels(), file.getsampwidth()), (24000, 1, 2))
            self.check_same(file.readframes(file.getnframes()), whole.content)
        path = self.folder / "speech.mp3"
        self.client.audio.speech.create(model="english", voice="bob", input="Hello there.").write_to_file(path)
        self.assertGreater(path.stat().st_size, 1000)

    def test_events(self):
        with self.client.audio.speech.with_streaming_response.create(model="tts-1", voice="alloy", input="Hello.",
                                                                    stream_format="sse", response_format="pcm") as reply:
            events = [json.loads(line[len("data: "):]) for line in reply.iter_lines() if line]
        self.assertEqual(events[0]["type"], "speech.audio.delta")
        self.assertEqual(events[-1]["type"], "speech.audio.done")
        self.assertEqual(events[-1]["usage"]["input_tokens"], 6)

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["english"])

    def test_errors_are_its_own_exceptions(self):
        create = self.client.audio.speech.create
        with self.assertRaises(openai.NotFoundError) as caught:
            create(model="gpt-9", voice="alloy", input="x")
        self.assertEqual((caught.exception.code, caught.exception.param), ("model_not_found", "model"))
        with self.assertRaises(openai.NotFoundError):
            create(model="tts-1", voice="nobody", input="x")
        with self.assertRaises(openai.BadRequestError) as caught:
            create(model="tts-1", voice="alloy", input="")
        self.assertEqual(caught.exception.param, "input")
        with self.assertRaises(openai.BadRequestError):
            create(model="tts-1", voice="alloy", input="x", instructions="cheerfully")
        with self.assertRaises(openai.AuthenticationError):
            openai.OpenAI(base_url=self.base, api_key="wrong", max_retries=0).models.list()

    def test_many_at_once_wait_their_turn(self):
        """Twice as many as there are slots: those that are refused ask again, as Retry-After tells them to."""

        async def speak(client, seed):
            reply = await client.audio.speech.create(model="tts-1", voice="alloy", input="Hello there.",
                                                     response_format="pcm", extra_body={"seed": seed})
            return reply.content

        async def all_of_them():
            async with openai.AsyncOpenAI(base_url=self.base, api_key="secret", max_retries=20) as client:
                return await asyncio.gather(*(speak(client, seed) for seed in range(8)))

        sounds = asyncio.run(all_of_them())
        self.assertEqual(len(set(sounds)), 8)
        alone = self.client.audio.speech.create(model="tts-1", voice="alloy", input="Hello there.", response_format="pcm",
                                                extra_body={"seed": 3})
        self.check_same(sounds[3], alone.content)


class Curl(Server):
    def curl(self, path, *arguments):
        done = subprocess.run(["curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "30",
                               f"http://{self.host}:{self.port}{path}", *arguments], capture_output=True, check=False)
        return done.returncode, done.stdout

    def test_curl(self):
        self.start_server()
        code, sound = self.curl("/v1/audio/speech", "--json", '{"input": "Hello there.", "response_format": "flac"}')
        self.assertEqual((code, sound[:4]), (0, b"fLaC"))
        code, error = self.curl("/v1/audio/speech", "--data", "{")
        self.assertEqual((code, json.loads(error)["error"]["code"]), (22, "invalid_json"))
        body = json.dumps({"input": "Hello.", "response_format": "pcm"})
        code, sound = self.curl("/v1/audio/speech", "--header", "Expect: 100-continue", "--data-raw", body + " " * 50000)
        self.assertEqual((code, len(sound) % 3840), (0, 0))
        self.assertGreater(len(sound), 0)
        code, error = self.curl("/v1/audio/speech", "--data-raw", body + " " * 100000)
        self.assertEqual(code, 22)
        self.assertIn("65536 bytes", json.loads(error)["error"]["message"])


if __name__ == "__main__":
    unittest.main()
