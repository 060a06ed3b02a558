"""`syrinx serve` asked by clients of others, unmodified: OpenAI's Python package, curl and ffmpeg."""
import asyncio
import contextlib
import functools
import io
import json
import os
import pathlib
import shutil
import subprocess
import time
import unittest
import unittest.mock
import wave

import openai

from program import BINARY, DATA, tiny_whisper, tone, wav
from server import LONG, Server


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
        self.assertEqual(self.client.models.retrieve("english"), next(iter(self.client.models.list())))
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve("tts-1")
        self.assertEqual(caught.exception.code, "model_not_found")

    def test_a_voice_is_made_spoken_with_and_deleted(self):
        with (DATA / "pocket_tts/voice.wav").open("rb") as sample:
            made = self.client.audio.voices.create(name="me", audio_sample=sample, consent="cons_1")
        self.assertEqual((made.id, made.name, made.object, made.type), ("me", "me", "audio.voice", "audio_sample"))
        self.assertLess(abs(made.created_at - time.time()), 60)
        speak = functools.partial(self.client.audio.speech.create, model="english", input="Hello there.", response_format="pcm")
        self.check_same(speak(voice={"id": made.id}).content, speak(voice="bob").content)  # of the same recording
        asked = []  # a name that is taken stays so: this client, which asks again twice by itself, does not
        hooks = openai.DefaultHttpxClient(event_hooks={"request": [asked.append]})
        with openai.OpenAI(base_url=self.base, api_key="secret", http_client=hooks) as client, \
                self.assertRaises(openai.ConflictError), (DATA / "pocket_tts/voice.wav").open("rb") as sample:
            client.audio.voices.create(name="me", audio_sample=sample, consent="cons_1")
        self.assertEqual(len(asked), 1)
        gone = self.client.audio.voices.delete("me")
        self.assertEqual((gone.id, gone.deleted, gone.object), ("me", True, "audio.voice.deleted"))
        with self.assertRaises(openai.NotFoundError):
            self.client.audio.voices.delete("me")
        with self.assertRaises(openai.PermissionDeniedError):
            self.client.audio.voices.delete("bob")

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
            async with openai.AsyncOpenAI(base_url=self.base, api_key="secret", max_retries=200) as client:
                return await asyncio.gather(*(speak(client, seed) for seed in range(8)))

        sounds = asyncio.run(all_of_them())
        self.assertEqual(len(set(sounds)), 8)
        alone = self.client.audio.speech.create(model="tts-1", voice="alloy", input="Hello there.", response_format="pcm",
                                                extra_body={"seed": 3})
        self.check_same(sounds[3], alone.content)


class Chat(Server):
    """A small random language model, whose answers in f32 are known."""

    def setUp(self):
        super().setUp()
        folder = DATA / "llama/chat_smollm"
        self.known = json.loads((folder / "expected.json").read_text())[0]
        self.start_server(model=["--speech-model", "", "--recognition-model", "", "--chat-model", folder / "chat_smollm.gguf",
                                 "--chat-precision", "f32", "--chat-slots", "1"])
        self.client = openai.OpenAI(base_url=f"http://{self.host}:{self.port}/v1", api_key="any", max_retries=0)
        self.create = functools.partial(self.client.chat.completions.create, model="gpt-4o-mini", temperature=0,
                                        extra_body={"repetition_penalty": 1},
                                        messages=self.known["messages"], max_completion_tokens=len(self.known["answer"]))

    def tearDown(self):
        self.client.close()
        super().tearDown()

    def test_whole_answer(self):
        answer = self.create()
        self.assertEqual((answer.choices[0].message.role, answer.choices[0].message.content), ("assistant", self.known["text"]))
        self.assertEqual((answer.model, answer.choices[0].finish_reason), ("chat_smollm", "length"))
        self.assertEqual(answer.usage.prompt_tokens, len(self.known["ids"]))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        raw = self.client.chat.completions.with_raw_response.create(model="chat_smollm", messages=self.known["messages"],
                                                                    max_tokens=1, logprobs=True)
        self.assertEqual(raw.headers["X-Syrinx-Ignored"], "logprobs")

    def test_streams(self):
        chunks = list(self.create(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]), self.known["text"])
        self.assertEqual(chunks[-2].choices[0].finish_reason, "length")
        self.assertEqual(chunks[-1].usage.completion_tokens, len(self.known["answer"]))
        with self.client.chat.completions.stream(model="chat_smollm", messages=self.known["messages"], temperature=0,
                                                 extra_body={"repetition_penalty": 1}, max_completion_tokens=len(self.known["answer"])) as stream:
            events = list(stream)
        self.assertEqual(events[-1].type, "content.done")
        self.assertEqual(events[-1].content, self.known["text"])

    def test_a_stream_that_is_closed_ends_it(self):
        stream = self.create(stream=True, max_completion_tokens=4000)
        next(iter(stream))
        stream.close()
        self.wait_for(lambda: self.free_slots("chat") == 1)
        self.create()

    def test_errors_are_its_own_exceptions(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.create(model="llama3")
        self.assertEqual((caught.exception.code, caught.exception.param), ("model_not_found", "model"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(temperature=3)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(messages=[{"role": "user", "content": "Hello. " * 5000}], stream=True)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]}])
        self.assertIn("images are not supported", caught.exception.message)


class Transcriptions(Server):
    """The small random Whisper hears words of its own in a tone; their sense does not matter here.  In f32, since int8
    rounds a little differently from processor to processor, and random weights then hear something else, or nothing."""

    def setUp(self):
        super().setUp()
        self.model = tiny_whisper(self.folder / "tiny")
        self.start_recogniser()
        self.sound = self.folder / "tone.wav"
        self.sound.write_bytes(wav(tone(1)))

    def start_recogniser(self, *arguments):
        self.start_server(*arguments, model=["--speech-model", "", "--recognition-model", self.model, "--recognition-precision", "f32"])
        self.client = openai.OpenAI(base_url=f"http://{self.host}:{self.port}/v1", api_key="any", max_retries=0)

    def tearDown(self):
        self.client.close()
        super().tearDown()

    def create(self, model="whisper-1", **fields):
        with self.sound.open("rb") as file:
            return self.client.audio.transcriptions.create(model=model, file=file, **fields)

    def test_every_format(self):
        heard = self.create()
        self.assertTrue(heard.text)
        self.assertEqual((heard.usage.type, heard.usage.seconds), ("duration", 1.0))
        self.assertEqual(self.create(response_format="text"), heard.text + "\n")
        self.assertTrue(self.create(response_format="vtt").startswith("WEBVTT\n\n"))
        self.assertIn(" --> ", self.create(response_format="srt"))
        verbose = self.create(response_format="verbose_json", timestamp_granularities=["word", "segment"])
        self.assertEqual(verbose.duration, 1.0)
        self.assertEqual(" ".join(segment.text for segment in verbose.segments), verbose.text)
        self.assertIsNotNone(verbose.segments[0].no_speech_prob)
        self.assertLessEqual(0, verbose.words[0].start)
        self.assertLessEqual(verbose.words[-1].end, verbose.duration)
        events = list(self.create(stream=True, language="en"))
        self.assertEqual({event.type for event in events[:-1]}, {"transcript.text.delta"})
        self.assertEqual(events[-1].type, "transcript.text.done")
        self.assertEqual("".join(event.delta for event in events[:-1]), events[-1].text)
        self.assertIsNone(events[-1].usage)  # which is one of tokens, for this client
        with self.sound.open("rb") as file:
            self.assertIsInstance(self.client.audio.translations.create(model="whisper-1", file=file).text, str)

    def test_what_clients_send_without_being_asked(self):
        heard = self.create(language="en").text
        self.assertEqual(self.create(model="gpt-transcribe", languages=["en"]).text, heard)  # LiveKit's
        self.assertEqual(self.create(languages=["en", "de"]).text, self.create(language="auto").text)
        self.assertEqual(self.create(model="gpt-4o-transcribe-diarize", include=["logprobs"], language="en").text, heard)
        hints = {"keywords": ["Syrinx"]}
        self.assertEqual(self.create(language="en", **hints).text, heard)
        self.assertNotEqual(self.create(language="en", prompt="the dog and the fox", temperature=0).text, heard)
        self.client.close()
        self.end_server()
        self.start_recogniser("--strict", "--ignore-hints")
        for name, value in hints.items():
            with self.assertRaises(openai.BadRequestError) as caught:
                self.create(**{name: value})
            self.assertEqual(caught.exception.param, name)
            self.assertIn("strict", caught.exception.message)
        self.assertEqual(self.create(language="en", temperature=0).text, heard)
        self.assertIsInstance(self.create(language="en", prompt="Syrinx", temperature=0.5).text, str)

    def test_errors_are_its_own_exceptions(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(temperature=7)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.BadRequestError) as caught:  # understood, but there is no such model here
            self.create(chunking_strategy={"type": "server_vad", "threshold": 0.5, "silence_duration_ms": 300})
        self.assertEqual(caught.exception.param, "chunking_strategy")
        self.assertIn("voice activity", caught.exception.message)
        with self.assertRaises(openai.NotFoundError):
            self.client.audio.transcriptions.create(model="gpt-9", file=("a.wav", wav(tone(1))))
        with self.assertRaises(openai.APIStatusError) as caught:
            self.client.audio.transcriptions.create(model="whisper-1", file=("a.mid", b"MThd" + bytes(100)))
        self.assertEqual((caught.exception.status_code, caught.exception.param), (415, "file"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.audio.transcriptions.create(model="whisper-1", file=("a.webm", b"\x1aE\xdf\xa3" + bytes(100)))
        self.assertEqual(caught.exception.param, "file")
        with self.assertRaises(openai.NotFoundError):
            self.client.audio.speech.create(model="tts-1", voice="alloy", input="x")


class Curl(Server):
    def curl(self, path, *arguments):
        done = subprocess.run(["curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "120",
                               f"http://{self.host}:{self.port}{path}", *arguments], capture_output=True, check=False)
        return done.returncode, done.stdout

    def test_curl(self):
        self.start_server("--max-body-kb", "64")
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
        self.assertIn("more than 64 KB, which is what the server's 'max_body_kb'", json.loads(error)["error"]["message"])

    def test_aac_where_its_encoder_is(self):
        hidden = self.folder / "hidden"  # empty files come before the machine's own
        hidden.mkdir()
        for number in range(59, 80):
            (hidden / f"libavformat.so.{number}").touch()
        body = {"input": "Hello.", "response_format": "aac"}
        self.start_server()
        status, headers, sound = self.request("POST", "/v1/audio/speech", body)
        self.assertEqual((status, headers["Content-Type"], sound[:2]), (200, "audio/aac", b"\xff\xf1"))
        decoded = subprocess.run(["ffmpeg", "-v", "error", "-i", "-", "-f", "s16le", "-"], input=sound, capture_output=True,
                                 check=True).stdout
        pcm = self.request("POST", "/v1/audio/speech", {**body, "response_format": "pcm"})[2]
        self.assertLess(abs(len(decoded) - len(pcm)) // 2, 2 * 1024 + 1)
        self.end_server()
        self.start_server(variables={"LD_LIBRARY_PATH": str(hidden)})
        _, message = self.check_refused(400, None, "response_format", "POST", "/v1/audio/speech", body)
        self.assertIn("AAC needs FFmpeg's libraries, and libavformat.so.", message)
        self.assertEqual(self.request("POST", "/v1/audio/speech", {"input": "Hello."})[0], 200)

    def made_m4a(self):
        path = self.folder / "tone.m4a"
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=duration=1", "-codec:a", "aac", path], check=True)
        return path

    def check_heard(self, path):
        code, answer = self.curl("/v1/audio/transcriptions", "--form", f"file=@{path}")
        self.assertEqual((code, list(json.loads(answer))), (0, ["text", "usage"]), answer)

    def test_decoder_that_ends_is_an_answer(self):
        recogniser = ["--speech-model", "", "--recognition-model", tiny_whisper(self.folder / "tiny")]
        tone_file, path = self.made_m4a(), "/v1/audio/transcriptions"
        self.start_server(model=recogniser, variables={"SYRINX_DECODE": "/bin/false"})
        for _ in range(3):
            _, answer = self.curl(path, "--form", f"file=@{tone_file}", "--write-out", "\n%{http_code}")
            error, status = answer.rsplit(b"\n", 1)
            self.assertEqual(status, b"503")
            self.assertIn("syrinx-decode has ended with status 1", json.loads(error)["error"]["message"])
        self.end_server()
        self.assertIn("are refused: the program syrinx-decode has ended with status 1", "".join(self.lines))
        self.assertIn("syrinx-decode has ended with status 1", self.logged("transcription")[0]["error"])
        self.start_server(model=recogniser)
        for _ in range(3):  # the first by the child that waited
            self.check_heard(tone_file)

    def test_updated_program_finds_its_decoder(self):
        """An update replaces the file of a server that runs."""
        program = self.folder / "bin/syrinx"
        program.parent.mkdir()
        for name in ("syrinx", "syrinx-decode"):
            shutil.copy(pathlib.Path(BINARY).with_name(name), program.parent)
        with unittest.mock.patch("program.BINARY", str(program)):
            self.start_server(model=["--speech-model", "", "--recognition-model", tiny_whisper(self.folder / "tiny")])
        os.replace(shutil.copy(program, self.folder / "new"), program)
        tone_file = self.made_m4a()
        for _ in range(3):  # the first by the child that waited
            self.check_heard(tone_file)

    def test_end_does_not_wait_for_a_silent_decoder(self):
        sleeper = self.folder / "sleeper"
        sleeper.write_text("#!/bin/sh\nexec sleep 100\n")
        sleeper.chmod(0o755)
        self.start_server("--drain-timeout", "1", variables={"SYRINX_DECODE": str(sleeper)},
                          model=["--speech-model", "", "--recognition-model", tiny_whisper(self.folder / "tiny")])
        asked = subprocess.Popen(["curl", "--silent", f"http://{self.host}:{self.port}/v1/audio/transcriptions", "--form", "file=@-"],
                                 stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        asked.stdin.write(b"#!AMR\n" + bytes(100))
        asked.stdin.close()
        self.wait_for(lambda: self.free_slots("recognition") < 4)
        begun = time.monotonic()
        self.end_server()
        self.assertLess(time.monotonic() - begun, 20)
        asked.wait(60)

    def test_curl_sends_recordings(self):
        self.start_server(model=["--speech-model", "", "--recognition-model", tiny_whisper(self.folder / "tiny")])
        path = "/v1/audio/transcriptions"
        for name in ("flac_stereo_44100.flac", "mp3_24000.mp3", "opus_48000.opus", "vorbis_22050.ogg"):
            code, answer = self.curl(path, "--form", f"file=@{DATA / 'audio' / name}", "--form", "model=tiny")
            self.assertEqual((code, list(json.loads(answer))), (0, ["text", "usage"]), answer)
        (self.folder / "tone.wav").write_bytes(wav(tone(1)))
        code, whole = self.curl(path, "--form", f"file=@{self.folder / 'tone.wav'}")
        film = self.folder / "tone.m4a"  # without loss
        subprocess.run(["ffmpeg", "-v", "error", "-i", self.folder / "tone.wav", "-codec:a", "alac", film], check=True)
        self.assertEqual(self.curl(path, "--form", f"file=@{film}"), (0, whole))
        film.write_bytes(film.read_bytes()[:4000])  # without its tables, which come last
        code, error = self.curl(path, "--form", f"file=@{film}")
        self.assertEqual((code, json.loads(error)["error"]["param"]), (22, "file"))
        self.assertIn("cut off", json.loads(error)["error"]["message"])
        code, chunked = self.curl(path, "--form", f"file=@{self.folder / 'tone.wav'}", "--header", "Transfer-Encoding: chunked")
        self.assertEqual((code, chunked), (0, whole))
        code, error = self.curl(path, "--form", "file=hello")
        self.assertEqual((code, json.loads(error)["error"]["param"]), (22, "file"))


class Ffmpeg(Server):
    """It reads what curl is sent, while that is made."""
    # Samples of 24 kHz beyond those spoken, at most: what the encoder puts in front and fills its last frame with.
    MORE = {"wav": 0, "flac": 0, "opus": 0, "mp3": 3 * 576, "aac": 2 * 1024}

    @contextlib.contextmanager
    def listener(self, text, form):
        """A process that tells the samples, and what curl will have said."""
        asked = subprocess.Popen(["curl", "--no-buffer", "--silent", "--show-error", "--fail", "--noproxy", "*",
                                  "--json", "@-", f"http://{self.host}:{self.port}/v1/audio/speech"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        told = subprocess.Popen(["ffmpeg", "-v", "error", "-i", "-", "-f", "s16le", "-ar", "24000", "-ac", "1", "-"],
                                stdin=asked.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        asked.stdout.close()  # so that curl hears of the other's end
        with asked, told:
            asked.stdin.write(json.dumps({"input": text, "response_format": form}).encode())
            asked.stdin.close()
            yield told
            self.curl_said = asked.stderr.read()
        self.statuses = asked.returncode, told.returncode

    def test_streams_are_read_whole(self):
        self.start_server()
        pcm = self.spoken(LONG)
        self.assertGreater(len(pcm), 1 << 20)
        for form, most in self.MORE.items():
            with self.listener(LONG, form) as listener:
                sound, errors = listener.communicate(timeout=600)
            self.assertEqual((self.statuses, errors, self.curl_said), ((0, 0), b"", b""), form)
            more = (len(sound) - len(pcm)) // 2
            self.assertTrue(0 <= more <= most, (form, more))
            if form in ("wav", "flac"):
                self.check_same(sound, pcm)

    def test_the_first_samples_come_long_before_the_last_are_made(self):
        """Of more sound than pipes and sockets hold; and who kills the listener ends the speech."""
        self.start_server("--max-text-characters", "1000000", "--max-body-kb", "2000")
        for form in self.MORE:
            with self.listener(LONG * 50, form) as listener:
                first = listener.stdout.read(48000)
                self.assertEqual((form, len(first), self.free_slots()), (form, 48000, 3))
                listener.kill()
            self.wait_for(lambda: self.free_slots() == 4)


if __name__ == "__main__":
    unittest.main()
