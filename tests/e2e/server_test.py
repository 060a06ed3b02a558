"""`syrinx serve` through plain sockets: what it answers, and what it refuses."""
import base64
import http.client
import json
import os
import re
import socket
import time
import unittest

from program import DATA, Program, noise, tiny_whisper, tone, wav
from server import ENGLISH, LONG, MODEL, Server, form

UPLOAD = (b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
          b"Content-Length: %d\r\n\r\n")
ASKED = UPLOAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n") % 1000000
# Heard for far longer than it takes to leave, half a minute at least, and short enough to be sent: two kilobytes are a second.
LONG_RECORDING = wav(tone(1, rate=1000) * 3600 * 3, rate=1000)


def ogg_checksum(page):
    """Of RFC 3533: a remainder by 0x04c11db7, highest bit first, of the page with zeros in its place."""
    remainder = 0
    for byte in page:
        remainder ^= byte << 24
        for _ in range(8):
            remainder = (remainder << 1 ^ (0x04c11db7 if remainder >> 31 else 0)) & 0xffffffff
    return remainder


class Speech(Server):
    def test_samples_are_those_of_the_program(self):
        self.start_server()
        code, expected, errors = self.run_it("speak", "--model", ENGLISH, "--voice", ENGLISH / "voice.safetensors", "--plain",
                                             "--seed", "5", "--out", "-", "--format", "pcm", "Hello there. [pause:1s]")
        self.assertEqual((code, errors), (0, ""))
        self.check_same(self.spoken("Hello there. [pause:1s]", seed=5), expected)
        self.check_same(self.spoken("Hello there. [pause:1s]", seed=5, stream=False), expected)
        self.check_same(self.spoken("Hello there. [pause:1s]", seed=6), expected, same=False)
        self.check_same(self.spoken("Hello there. [pause:1s]", seed=5, temperature=0), expected, same=False)
        self.check_same(self.spoken("Hello there. [pause:1s]", seed=5, voice="bob"), expected, same=False)

    def test_every_format_streams_and_comes_whole(self):
        self.start_server()
        samples = len(self.spoken()) // 2
        begin = {"mp3": (b"\xff", "audio/mpeg"), "opus": (b"OggS", "audio/ogg"), "flac": (b"fLaC", "audio/flac"),
                 "wav": (b"RIFF", "audio/wav"), "pcm": (b"", "audio/pcm; rate=24000; channels=1")}
        for name, (magic, kind) in begin.items():
            status, headers, streamed = self.speak(response_format=name)
            self.assertEqual((status, headers["Content-Type"]), (200, kind))
            self.assertEqual(headers["Transfer-Encoding"], "chunked")
            self.assertTrue(streamed.startswith(magic), name)
            status, headers, whole = self.speak(response_format=name, stream=False)
            self.assertEqual((status, headers["Content-Type"]), (200, kind))
            self.assertEqual(int(headers["Content-Length"]), len(whole))
            if name == "wav":
                self.assertEqual(streamed[40:44], b"\xff" * 4)
                self.assertEqual(int.from_bytes(whole[40:44], "little"), 2 * samples)
                self.check_same(streamed[44:], whole[44:])
        self.assertEqual(self.speak()[1]["Content-Type"], "audio/mpeg")
        self.assertEqual(len(self.spoken(sample_rate=8000)) // 2, samples // 3)
        self.assertEqual(self.speak(response_format="pcm", sample_rate=8000)[1]["Content-Type"],
                         "audio/pcm; rate=8000; channels=1")

    def test_events_hold_the_same_sound(self):
        self.start_server()
        status, headers, body = self.speak(response_format="pcm", stream_format="sse")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        events = [json.loads(line[len("data: "):]) for line in body.decode().split("\n\n") if line]
        self.assertEqual({event["type"] for event in events[:-1]}, {"speech.audio.delta"})
        sound = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
        self.check_same(sound, self.spoken())
        frames = len(sound) // 2 // 1920
        stopped = events[-1].pop("finish_reason")
        self.assertIn(stopped, ("eos", "limit"))  # random weights end a text or do not
        self.assertEqual(events[-1]["usage"].pop("stopped"), stopped)
        self.assertEqual(events[-1], {"type": "speech.audio.done", "usage": {
            "input_tokens": 12, "output_tokens": frames, "total_tokens": 12 + frames}})

    def test_voices_and_models_by_their_names(self):
        self.start_server("--voice-names", "aunt=bob")
        bob = self.spoken(voice="bob")
        self.check_same(self.spoken(voice="aunt"), bob)
        self.check_same(self.spoken(voice={"id": "bob"}), bob)
        for name in ("ann", "alloy", "verse"):
            self.check_same(self.spoken(voice=name, model="tts-1"), self.spoken(model="english"))
        self.check_same(self.spoken(model="gpt-4o-mini-tts-2025-03-20"), self.spoken())
        self.check_same(self.spoken(voice="bob", language="en-GB"), bob)
        voices = json.loads(self.request("GET", "/v1/audio/voices")[2])["voices"]
        self.assertEqual([(voice["id"], voice["model"], voice["kind"]) for voice in voices],
                         [("ann", "english", "cloned"), ("bob", "english", "cloned")])
        models = json.loads(self.request("GET", "/v1/models")[2])
        self.assertEqual([(model["id"], model["object"]) for model in models["data"]], [("english", "model")])
        self.assertEqual(json.loads(self.request("GET", "/v1/models/english")[2]), models["data"][0])
        self.assertEqual(json.loads(self.request("GET", "/v1/audio/models")[2]), {"models": models["data"]})
        self.check_refused(404, "model_not_found", "model", "GET", "/v1/models/tts-1")
        self.assertEqual(models["data"][0]["languages"], ["en"])
        for field in models["data"][0]["unsupported_parameters"]:
            numbers = ("speed", "top_k", "top_p", "repetition_penalty", "max_seconds", "carry_seconds", "subtalker_temperature", "subtalker_top_k", "subtalker_top_p")
            value = {"noise": True, "phonemes": True, "text_layout": "whole", **dict.fromkeys(numbers, 1), "speed": 2}.get(field, "x")
            status, headers, body = self.speak("Hello.", **{field: value})
            self.assertEqual((status, headers["X-Syrinx-Ignored"]), (200, field), body)
        speech = "POST", "/v1/audio/speech"
        self.check_refused(404, "model_not_found", "model", *speech, {"input": "x", "model": "whisper-1"})
        for path in (str(ENGLISH / "voice.safetensors"), "../english/voice", "voice.safetensors", "hf://a/b/c.wav", "carl"):
            self.check_refused(404, "voice_not_found", "voice", *speech, {"input": "x", "voice": path})

    def test_without_a_default_the_first_voice_speaks(self):
        self.start_server(model=MODEL[:MODEL.index("--voice")])
        expected = self.spoken(voice="ann")
        for fields in ({}, {"voice": "alloy"}, {"voice": ""}):
            self.check_same(self.spoken(**fields), expected)

    def test_fields_of_other_servers_and_texts_of_any_kind(self):
        self.start_server()
        expected = self.spoken()
        status, headers, body = self.speak(response_format="pcm", stream=True, lang_code="a", return_download_link=False,
                                           download_format="wav", normalization_options={"normalize": True}, speed="", seed=None)
        self.assertEqual((status, headers["X-Syrinx-Ignored"]), (200, "lang_code, download_format, normalization_options"), body)
        self.check_same(body, expected)
        self.assertEqual(set(self.spoken(volume_multiplier=0)), {0})
        body = b'{"input": "Hello there.\\ud83d", "response_format": "pcm"}'  # cut within an emoji
        status, _, sound = self.request("POST", "/v1/audio/speech", body)
        self.assertEqual(status, 200, sound)
        self.check_same(sound, expected)
        status, _, sound = self.speak("Hello there. " * 400, response_format="opus")
        self.assertEqual(status, 200, sound)

    def test_marks_and_pictures_alone_are_silence(self):
        """Agents send such pieces of an answer, and end with a refused one."""
        self.start_server()
        for text in ("...", "\U0001f600", "\u2014 !?"):
            self.check_same(self.spoken(text), bytes(4800))
        for form, begins in (("wav", b"RIFF"), ("mp3", b""), ("flac", b"fLaC"), ("opus", b"OggS")):
            status, _, body = self.speak("...", response_format=form)
            self.assertEqual(status, 200, body)
            self.assertTrue(len(body) > 100 and body.startswith(begins), (form, len(body)))

    def test_unsupported_fields_are_ignored_unless_strict(self):
        self.start_server()
        plain = self.spoken(seed=5)
        status, headers, body = self.speak("Hello there.", seed=5, response_format="pcm", speed=2, top_k=50, instructions="sing")
        self.assertEqual((status, headers["X-Syrinx-Ignored"]), (200, "speed, top_k, instructions"))
        self.check_same(body, plain)
        self.check_same(self.spoken(seed=5, max_tokens=50), plain)
        self.check_same(self.spoken(seed=5, decode_steps=2), plain, same=False)
        self.assertIsNone(self.speak("Hello there.", seed=5, speed=1, instructions="")[1]["X-Syrinx-Ignored"])
        self.end_server()
        self.start_server("--strict", "--ignore-instructions")
        for field, value in (("speed", 2), ("top_k", 50), ("instructions", "sing"), ("ref_audio", "UklGRg==")):
            _, message = self.check_refused(400, None, field, "POST", "/v1/audio/speech", {"input": "x", field: value})
            self.assertIn("leave it out", message)

    def test_misuses_are_named(self):
        self.start_server("--max-text-characters", "20")
        speech = "POST", "/v1/audio/speech"
        for param, code, body in (("input", None, {}), ("input", "string_above_max_length", {"input": "x" * 21}),
                                  ("speed", None, {"input": "Hello.", "speed": 5}),
                                  ("max_tokens", None, {"input": "Hello.", "max_tokens": 0}),
                                  ("response_format", None, {"input": "x", "response_format": "aiff"}),
                                  ("pitch", "unknown_parameter", {"input": "x", "pitch": 1}),
                                  ("language", None, {"input": "x", "language": "de"}),
                                  (None, "invalid_json", b"{"), (None, "invalid_json", b"\xff\xfe")):
            self.check_refused(400, code, param, *speech, body)
        _, message = self.check_refused(400, None, "input", *speech, {"input": "\u4f60\u597d"})
        self.assertIn("nothing to say", message)
        self.check_refused(400, None, "input", *speech, {"input": " \n\t"})
        self.assertEqual(self.free_slots(), 4)
        sound = self.spoken("Still here.")
        self.assertTrue(sound and len(sound) % 3840 == 0, len(sound))


class Access(Server):
    def test_keys(self):
        keys = self.folder / "keys"
        keys.write_text("one\ntwo\n")
        self.start_server("--api-key-file", keys)
        for path in ("/health", "/ready"):
            self.assertEqual(self.request("GET", path)[0], 200)
        for path in ("/metrics", "/v1/models", "/v1/audio/models", "/v1/audio/voices"):
            headers, message = self.check_refused(401, "invalid_api_key", None, "GET", path)
            self.assertEqual(headers["WWW-Authenticate"], "Bearer")
            self.assertIn("Authorization: Bearer KEY", message)
            self.assertEqual(self.request("GET", path, headers={"Authorization": "Bearer two"})[0], 200)
        self.check_refused(401, "invalid_api_key", None, "POST", "/v1/audio/speech", {"input": LONG},
                           headers={"Authorization": "Bearer three"})
        self.assertEqual(self.speak(headers={"Authorization": "Bearer one"})[0], 200)

    def test_web_pages(self):
        self.start_server("--cors-origins", "https://good.example")
        good = {"Origin": "https://good.example"}
        self.assertEqual(self.speak(headers=good)[1]["Access-Control-Allow-Origin"], "https://good.example")
        status, headers, _ = self.request("OPTIONS", "/v1/audio/speech", headers={**good, "Access-Control-Request-Method": "POST"})
        self.assertEqual(status, 204)
        self.assertIn("Authorization", headers["Access-Control-Allow-Headers"])
        for asked, told in (("authorization, x-stainless-os", "authorization, x-stainless-os"),
                            ("x\ty", "Authorization, Content-Type, X-Request-Id")):
            headers = self.request("OPTIONS", "/v1/audio/speech", headers={
                **good, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked})[1]
            self.assertEqual(headers["Access-Control-Allow-Headers"], told)
        own = {"Origin": f"http://{self.host}:{self.port}"}
        self.assertIsNone(self.speak(headers=own)[1]["Access-Control-Allow-Origin"])
        for origin in ("https://bad.example", "null", "http://127.0.0.1:1"):
            self.check_refused(403, "origin_not_allowed", None, "GET", "/v1/models", headers={"Origin": origin})
        self.check_refused(403, "host_not_allowed", None, "GET", "/v1/models", headers={"Host": f"bad.example:{self.port}"})
        self.assertEqual(self.request("GET", "/v1/models", headers={"Host": "good.example"})[0], 200)
        rebound = {"Origin": f"http://bad.example:{self.port}", "Host": f"bad.example:{self.port}"}
        self.check_refused(403, "origin_not_allowed", None, "GET", "/v1/models", headers=rebound)
        for host in ("host.docker.internal:8080", "host.containers.internal", "LOCALHOST:1", "localhost.:8080"):
            self.assertEqual(self.request("GET", "/v1/models", headers={"Host": host})[0], 200, host)
        self.check_refused(403, "host_not_allowed", None, "GET", "/v1/models", headers={"Host": "wiki.internal"})
        # The target's own host counts, whatever the header says.
        for target in (f"http://localhost:{self.port}/v1/models", f"HTTP://{self.host}:{self.port}/%76%31/models"):
            self.assertEqual(self.request("GET", target, headers={"Host": "bad.example"})[0], 200, target)
        self.check_refused(403, "host_not_allowed", None, "GET", "http://bad.example/v1/models", headers={"Host": "localhost"})
        for target in ("http:///health", "http://bad.example#@localhost/health", "http://localhost%2ebad/health"):
            self.check_refused(400, None, None, "GET", target, headers={"Host": "localhost"})

    def test_pages_from_files(self):
        self.start_server("--cors-origins", "null", "--cors-origins", "file://")
        for origin in ("null", "file://"):
            self.assertEqual(self.speak(headers={"Origin": origin})[1]["Access-Control-Allow-Origin"], origin)
        self.check_refused(403, "origin_not_allowed", None, "GET", "/v1/models", headers={"Origin": "https://bad.example"})


class Transcription(Server):
    """The small random Whisper hears words of its own in a tone; what it hears does not matter here."""

    def start_recogniser(self, *arguments):
        self.model = tiny_whisper(self.folder / "tiny")
        self.start_server(*arguments, model=["--speech-model", "", "--recognition-model", self.model])

    def heard(self, sound, **fields):
        status, _, body = self.transcribe(sound, **fields)
        self.assertEqual(status, 200, body)
        return body

    def test_words_are_those_of_the_program(self):
        self.start_recogniser()
        sound = wav(tone(1))
        (self.folder / "tone.wav").write_bytes(sound)
        def of_the_program(*arguments):
            code, output, errors = self.run_it("transcribe", "--model", self.model, self.folder / "tone.wav", "--format",
                                               "json", *arguments)
            self.assertEqual((code, errors), (0, ""))
            return json.loads(output)

        expected = of_the_program()
        self.assertTrue(expected["text"])
        usage = {"type": "duration", "seconds": 1.0}
        self.assertEqual(json.loads(self.heard(sound)), {"text": expected["text"], "usage": usage})
        self.assertEqual(self.heard(sound, response_format="text").decode(), expected["text"] + "\n")
        self.assertTrue(self.heard(sound, response_format="vtt").startswith(b"WEBVTT\n\n"))
        verbose = json.loads(self.heard(sound, response_format="verbose_json",
                                        **{"timestamp_granularities[]": ["word", "segment"]}))
        timed = of_the_program("--timestamps", "word")  # whose segments end where words do
        self.assertEqual((verbose["language"], verbose["duration"], verbose["usage"]), (timed["language"], 1.0, usage))
        self.assertEqual([(part["start"], part["end"], part["text"], part["tokens"]) for part in verbose["segments"]],
                         [(part["start_s"], part["end_s"], part["text"], part["tokens"]) for part in timed["segments"]])
        self.assertIsInstance(verbose["segments"][0]["no_speech_prob"], float)
        self.assertEqual([word["word"] for word in verbose["words"]],
                         [word["word"] for part in timed["segments"] for word in part["words"]])
        status, headers, body = self.transcribe(sound, stream="true")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        events = [json.loads(line[len("data: "):]) for line in body.decode().split("\n\n") if line]
        self.assertEqual("".join(event["delta"] for event in events[:-1]), expected["text"])
        self.assertEqual(events[-1], {"type": "transcript.text.done", "text": expected["text"]})
        self.assertEqual(self.metric('syrinx_audio_seconds_total{model="tiny",direction="in"}'), 5)

    def test_every_container(self):
        self.start_recogniser()
        clips = [path for path in (DATA / "audio").iterdir() if path.suffix != ".md"]
        self.assertEqual({path.suffix for path in clips}, {".flac", ".mp3", ".ogg", ".opus", ".wav"})
        for clip in clips:
            self.assertIn("text", json.loads(self.heard(clip.read_bytes())), clip)

    def test_broken_recordings(self):
        """Each is told what is wrong with it, and the next good one is heard."""
        self.start_recogniser()
        good = (DATA / "audio/opus_48000.opus").read_bytes()
        expected = self.heard(good)

        def with_head(at, value):
            """The Opus stream's head with another byte, and the checksum that its page then has."""
            end = 28 + good[27]
            page = bytearray(good[:end])
            page[28 + at] = value
            page[22:26] = ogg_checksum(page[:22] + bytes(4) + page[26:]).to_bytes(4, "little")
            return bytes(page) + good[end:]

        self.check_same(with_head(9, good[28 + 9]), good)
        pcm = wav(tone(0.5))
        for sound, status, sentence in (
                (good[:-100], 400, "cut off in the middle of an Ogg page"),
                (good[:-100] + bytes([good[-100] ^ 1]) + good[-99:], 400, "an Ogg page has another checksum"),
                (with_head(8, 0xf0), 400, "Opus stream cannot be opened"),  # of a version to come
                (with_head(9, 0), 400, "Opus stream cannot be opened"),  # without a channel
                (with_head(9, 200), 400, "Opus stream cannot be opened"),  # with more than a stream of its kind has
                (with_head(18, 1), 400, "Opus stream cannot be opened"),  # with a table of channels, which is not there
                (pcm[:16] + b"\4" + pcm[17:], 400, "a WAV format of 4 bytes"),
                (pcm[:22] + b"\0" + pcm[23:], 413, "has 0 channels"),
                (pcm[:32] + b"\7" + pcm[33:], 400, "says 7 bytes a frame"),
                (pcm[:20] + b"\x99\x99" + pcm[22:], 415, "a WAV file of kind 39321"),
                (pcm[:30], 400, "cut off")):
            _, message = self.check_refused(status, None, "file", "POST", "/v1/audio/transcriptions", form(sound),
                                            headers={"Content-Type": "multipart/form-data; boundary=b"})
            self.assertIn(sentence, message)
            self.assertEqual(self.heard(good), expected)
        self.assertEqual(self.free_slots("recognition"), 4)

    def test_options_of_the_search(self):
        self.start_recogniser()
        sound = wav(noise(48000))
        (self.folder / "noise.wav").write_bytes(sound)
        texts = set()
        for fields in ({}, {"beam": "0"}, {"beam": "3", "patience": "2", "length_penalty": "1"}, {"temperature": "0.6", "best_of": "2"},
                       {"prompt": "the dog and the fox"}):
            arguments = [text for name, value in fields.items() for text in ("--" + name.replace("_", "-"), value)]
            code, output, errors = self.run_it("transcribe", "--model", self.model, "--language", "en", *arguments,
                                               self.folder / "noise.wav")
            self.assertEqual((code, errors), (0, ""))
            status, headers, body = self.transcribe(sound, language="en", response_format="text", **fields)
            self.assertEqual((status, headers["X-Syrinx-Ignored"], body), (200, None, output), fields)
            texts.add(body)
        self.assertEqual(len(texts), 4)  # this small model gives one text by beams of 3 and 5
        for fields, field, sentence in (
                ({"beam": "17"}, "beam", "from 0 to 16"), ({"beam": "2.5"}, "beam", "whole number"),
                ({"best_of": "0"}, "best_of", "from 1 to 16"), ({"patience": "9"}, "patience", "from 0.1 to 8"),
                ({"length_penalty": "-1"}, "length_penalty", "from 0 to 1"), ({"temperature": "1.1"}, "temperature", "from 0 to 1"),
                ({"prompt": "x" * 16385}, "prompt", "at most 16384"), ({"beam": "0", "patience": "2"}, "patience", "a beam of 1 or more"),
                ({"beam": "1", "patience": "0.5"}, "patience", "finishes nothing")):
            _, message = self.check_refused(400, None, field, "POST", "/v1/audio/transcriptions", form(sound, **fields),
                                            headers={"Content-Type": "multipart/form-data; boundary=b"})
            self.assertIn(sentence, message)

    def test_options_that_the_model_lacks(self):
        """A transducer has a beam search, its CTC head none; neither has the rest."""
        sound, whispers = wav(noise(20800)), {"best_of": "2", "patience": "2", "length_penalty": "0.5", "temperature": "0.5", "prompt": "x"}
        for name, lacking in (("hybrid_streaming", {}), ("conformer_ctc", {"beam": "4"})):
            model = ["--speech-model", "", "--recognition-model", DATA / f"transducer/{name}.nemo"]
            self.start_server(model=model)
            plain = self.heard(sound)
            for field, value in (whispers | lacking).items():
                status, headers, body = self.transcribe(sound, **{field: value})
                self.assertEqual((status, headers["X-Syrinx-Ignored"], body), (200, field, plain))
            if not lacking:
                self.assertNotEqual(self.heard(sound, beam="4"), plain)
            self.end_server()
            self.start_server("--strict", model=model)
            for field, value in (whispers | lacking).items():
                _, message = self.check_refused(400, None, field, "POST", "/v1/audio/transcriptions", form(sound, **{field: value}),
                                                headers={"Content-Type": "multipart/form-data; boundary=b"})
                self.assertIn("leave it out", message)
            self.end_server()

    def test_misuses_are_named(self):
        self.start_recogniser("--max-recording-s", "2")
        post = "POST", "/v1/audio/transcriptions"
        kind = {"Content-Type": "multipart/form-data; boundary=b"}
        good = wav(tone(0.5))
        for status, code, param, fields in (
                (400, None, "temperature", {"temperature": "7"}), (400, None, "language", {"language": "xx"}),
                (404, "model_not_found", "model", {"model": "tts-1"}),
                (400, "unknown_parameter", "speed", {"speed": "1"}), (400, None, "stream", {"stream": "x"}),
                (400, None, "chunking_strategy", {"chunking_strategy": '{"type": "server_vad", "threshold": 0.4}'})):
            _, message = self.check_refused(status, code, param, *post, form(good, **fields), headers=kind)
            self.assertNotIn(str(self.folder), message)
        self.check_refused(415, None, "file", *post, form(b"GIF89a" + bytes(100)), headers=kind)
        self.check_refused(413, None, "file", *post, form(wav(tone(2.5))), headers=kind)
        self.check_refused(400, None, "file", *post, form(good[:30]), headers=kind)
        self.check_refused(415, None, None, *post, {"file": "x"})
        self.check_refused(400, "invalid_multipart", None, *post, form(good)[:-20], headers=kind)
        status, _, body = self.transcribe(good, path="/v1/audio/translations")
        self.assertEqual(status, 200, body)
        self.assertEqual(self.free_slots("recognition"), 4)

    def test_uploads_have_room_of_their_own(self):
        # The half one may wait for as long as a slow build takes to hear the other.
        self.start_recogniser("--max-upload-mb", "1", "--max-uploads-mb", "1", "--stalled-reader-s", "600", "--upload-timeout-s", "600")
        self.check_refused(413, None, None, "POST", "/v1/audio/transcriptions", bytes(3 << 20))
        with self.connect() as half:
            half.sendall(UPLOAD % 1000000)
            self.heard(wav(tone(2)))  # who only says what it will send holds nothing
            half.sendall(bytes(999000))
            self.wait_for(lambda: self.metric("syrinx_upload_bytes") == 999000)  # else the other has the room, and this one goes
            self.assertEqual(self.transcribe(wav(tone(2)))[0], 503)
        self.wait_for(lambda: self.metric("syrinx_upload_bytes") == 0)
        self.heard(wav(tone(2)))
        self.assertGreater(self.metric('syrinx_rejected_total{reason="uploads_full"}'), 0)

    def test_uploads_have_a_time_of_their_own(self):
        self.start_recogniser("--upload-timeout-s", "2", "--request-timeout-s", "1")
        with self.connect() as half:
            begun = time.monotonic()
            half.sendall(UPLOAD % 1000000 + b"--b")
            self.assertTrue(half.recv(100).startswith(b"HTTP/1.1 408 "))
            self.assertGreaterEqual(time.monotonic() - begun, 2)

    def first_words(self, sent, expect):
        with self.connect() as connection:
            connection.sendall(sent)
            self.assertTrue(connection.recv(100).startswith(expect))

    def test_uploads_are_refused_before_they_are_sent(self):
        self.start_recogniser("--recognition-slots", "1", "--wyoming-port", "0")
        self.first_words(ASKED.replace(b"multipart/form-data; boundary=b", b"text/plain"), b"HTTP/1.1 415 ")
        with self.hold_recognition():
            self.first_words(ASKED, b"HTTP/1.1 503 ")
            self.assertEqual(self.transcribe(wav(tone(1)))[0], 503)
            self.assertEqual(self.request("GET", "/ready?slots=recognition")[0], 503)

    def test_an_upload_that_stops_is_told_so(self):
        self.start_recogniser("--stalled-reader-s", "0.5")
        with self.connect() as silent:
            silent.sendall(ASKED + b"--b")
            going_on = b"HTTP/1.1 100 Continue\r\n\r\n"
            self.assertEqual(silent.recv(len(going_on)), going_on)
            reply = http.client.HTTPResponse(silent)
            reply.begin()
            self.assertEqual(reply.status, 408)
            self.assertIn("nothing of the request's body has come for 0.5 s", json.loads(reply.read())["error"]["message"])

    def test_a_client_that_leaves_makes_room(self):
        self.start_recogniser("--recognition-slots", "1")
        body = form(LONG_RECORDING)
        with self.connect() as first:
            first.sendall(UPLOAD % len(body) + body)
            self.wait_for(lambda: self.free_slots("recognition") == 0)
        self.wait_for(lambda: self.free_slots("recognition") == 1)
        self.heard(wav(tone(1)))
        self.end_server()
        self.assertEqual([line["stopped"] for line in self.logged("transcription")], ["cancelled", "done"])


class Kinds(Server):
    def test_recognition_alone(self):
        self.start_server(model=["--speech-model", "", "--recognition-model", tiny_whisper(self.folder / "tiny")])
        models = json.loads(self.request("GET", "/v1/models")[2])["data"]
        self.assertEqual([(model["id"], model["task"]) for model in models], [("tiny", "automatic-speech-recognition")])
        self.assertIn("en", models[0]["languages"])
        self.assertIn("keywords[]", models[0]["unsupported_parameters"])
        self.assertEqual((self.free_slots("speech"), self.free_slots("recognition")), (0, 4))
        self.assertEqual(self.request("GET", "/ready?slots=1")[0], 200)
        self.check_refused(404, "model_not_found", "model", "POST", "/v1/audio/speech", {"input": "x"})

    def test_both(self):
        self.start_server("--recognition-model", tiny_whisper(self.folder / "tiny"), "--recognition-slots", "1", "--wyoming-port", "0",
                          model=MODEL[2:])
        models = json.loads(self.request("GET", "/v1/models")[2])["data"]
        self.assertEqual([model["id"] for model in models], ["english", "tiny"])
        self.assertTrue(self.spoken())
        self.assertEqual(self.metric('syrinx_slots{model="tiny",state="free"}'), 1)
        with self.hold_recognition():
            self.assertEqual(self.request("GET", "/ready?slots=recognition")[0], 503)
            self.assertEqual(self.request("GET", "/ready?slots=1")[0], 200)  # speech has some


class Metrics(Server):
    # The metrics that the survey of the ecosystem asks for, section (a), "Operations", with the kind and the labels of each;
    # of its process_*, what Prometheus's own clients tell.
    TABLE = {
        "syrinx_build_info": ("gauge", {"version", "backend", "simd"}),
        "syrinx_sessions_active": ("gauge", {"model"}), "syrinx_slots": ("gauge", {"model", "state"}),
        "syrinx_queue_depth": ("gauge", {"model"}),
        "syrinx_requests_total": ("counter", {"route", "code"}), "syrinx_rejected_total": ("counter", {"reason"}),
        "syrinx_request_duration_seconds": ("histogram", {"route"}),
        "syrinx_time_to_first_audio_seconds": ("histogram", {"model"}),
        "syrinx_time_to_first_word_seconds": ("histogram", {"model"}),
        "syrinx_step_duration_seconds": ("histogram", {"model"}),
        "syrinx_step_deadline_missed_total": ("counter", {"model"}),
        "syrinx_audio_seconds_total": ("counter", {"model", "direction"}),
        "syrinx_generation_stopped_total": ("counter", {"reason"}),
        "syrinx_model_load_seconds": ("gauge", {"model"}), "syrinx_model_memory_bytes": ("gauge", {"model"}),
        "process_cpu_seconds_total": ("counter", set()), "process_open_fds": ("gauge", set()),
        "process_max_fds": ("gauge", set()), "process_virtual_memory_bytes": ("gauge", set()),
        "process_resident_memory_bytes": ("gauge", set()), "process_start_time_seconds": ("gauge", set())}

    def start_all(self):
        self.start_server("--recognition-model", tiny_whisper(self.folder / "tiny"), "--chat-model",
                          DATA / "llama/chat_smollm/chat_smollm.gguf", model=MODEL[2:])
        self.wait_for(lambda: self.request("GET", "/ready")[0] == 200)

    def printed(self):
        """Of each metric on the page, kind and names of labels."""
        page = self.request("GET", "/metrics")[2].decode()
        kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.M))
        found = {}
        for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", page, re.M):
            family = name if name in kinds else re.sub(r"_(bucket|sum|count)$", "", name)
            names = set(re.findall(r'(\w+)="', labels)) - {"le"}
            self.assertEqual(found.setdefault(family, (kinds[family], names)), (kinds[family], names), name)
        return found

    def test_what_is_asked_for_and_documented_is_there(self):
        self.start_all()
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="/ready",code="200"}') > 0)
        printed = self.printed()  # before anything was asked for but this
        self.assertEqual({name: printed.get(name) for name in self.TABLE}, self.TABLE)
        document = (DATA.parent.parent / "docs/server.md").read_text()
        rows = re.findall(r"^\| (`(?:syrinx|process)_.*?`) \| (gauge|counter|histogram) \|", document, re.M)
        listed = {name: kind for names, kind in rows for name in re.findall(r"`(\w+)`", names)}
        del listed["syrinx_tls_handshakes_failed_total"]  # where TLS is spoken
        self.assertEqual(listed, {name: kind for name, (kind, _) in printed.items()})

    def test_weights_heartbeat_reads_their_pages(self):
        self.start_server("--weights-heartbeat", variables={"SYRINX_LOG": "debug"})
        self.wait_for(lambda: any(re.search(r"read [1-9]\d* pages of weights", line) for line in self.lines))

    def test_steps_and_memory_are_the_models(self):
        self.start_all()
        steps = "syrinx_step_duration_seconds_count"
        self.assertEqual(self.metric(steps + '{model="english"}'), 0)  # the warm-up is nobody's
        frames = len(self.spoken()) // 3840
        self.assertGreater(self.metric(steps + '{model="english"}'), frames)
        self.assertGreater(self.metric('syrinx_step_duration_seconds_sum{model="english"}'), 0)
        self.assertEqual(self.transcribe(wav(tone(1)))[0], 200)
        self.assertEqual(self.metric(steps + '{model="tiny"}'), 0)  # a recording is never due
        lines = self.request("GET", "/metrics")[2].decode().splitlines()
        self.assertIn('syrinx_queue_depth{model="english"} 0', lines)
        self.assertTrue(any(line.startswith('syrinx_model_memory_bytes{model="english"} ') for line in lines))


class Settings(Program):
    def test_check_and_print(self):
        code, text, errors = self.run_it("serve", "--print-config", "--port", "1234")
        self.assertEqual((code, errors), (0, ""))
        self.assertIn(b"\nport = 1234\n", text)
        for flag in ("--drain-timeout", "--drain-timeout-s"):
            self.assertIn(b"\ndrain_timeout_s = 2.5\n", self.run_it("serve", "--print-config", flag, "2.5")[1])
        self.assertIn(b"--drain-timeout-s,--drain-timeout SECONDS", self.run_it("serve", "--help")[1].replace(b", ", b","))
        config = self.folder / "syrinx.toml"
        config.write_bytes(text)
        self.assertEqual(self.run_it("serve", "--config", config, "--print-config")[1], text)
        self.assertEqual(self.run_it("serve", "--config", config, "--check", *MODEL)[0], 0)
        self.check_fails(3, "syrinx pull kokoro", "serve", "--config", config, "--check")
        self.check_fails(3, "syrinx pull kokoro", "serve", "--port", "0")
        config.write_text('recognition_model = "whisper-base"\nvoice = "nobody"\n')
        self.check_fails(3, "syrinx pull whisper-base", "serve", "--config", config, "--check", *MODEL[2:])
        self.assertEqual(self.run_it("serve", "--config", config, "--check", *MODEL[:-2], "--voice", "")[0], 0)

    def test_mistakes(self):
        bad = self.folder / "bad.toml"
        bad.write_text("\nport = 123456\n")
        self.check_fails(2, "line 2: 'port' is 123456; give a whole number from 0 to 65535", "serve", "--config", bad)
        self.check_fails(3, "none.toml", "serve", "--config", "none.toml")
        self.check_fails(2, "--port is 'x'", "serve", "--port", "x")
        self.check_fails(2, "--port is ''", "serve", "--port", "")
        self.check_fails(2, "nothing to serve", "serve", "--speech-model", "", "--recognition-model", "")
        self.check_fails(2, "no API key is set", "serve", "--host", "0.0.0.0", *MODEL)
        for check in ((), ("--check",)):  # before anything is loaded, and in the same words
            self.check_fails(2, "'localhos' is not an address", "serve", *check, "--host", "localhos", "--allow-no-key", *MODEL)
            self.check_fails(2, "'cors_origins' holds 'example.org', which no browser sends", "serve", *check, *MODEL,
                             "--cors-origins", "example.org")
            self.check_fails(3, "there is no voice 'carl'", "serve", *check, *MODEL[:-1], "carl")
            self.check_fails(3, "no voice file 'none.wav'", "serve", *check, *MODEL[:-1], "none.wav")
            self.check_fails(5, f"'voices' holds 'x={bad}': ", "serve", *check, *MODEL, "--voices", f"x={bad}")
        self.check_fails(3, "no voice 'carl'", "serve", "--check", *MODEL, "--voice-names", "x=carl")
        self.check_fails(3, "none.wav", "serve", "--check", *MODEL, "--voices", "x=none.wav")
        self.check_fails(3, "'api_key_file': ", "serve", "--check", *MODEL, "--api-key-file", "none")
        self.check_fails(2, "'port' and 'wyoming_port' are both 9000", "serve", "--check", *MODEL, "--port", "9000", "--wyoming-port", "9000")
        bad.write_text("good\nsome secret\n")
        bad.chmod(0o640)
        self.check_fails(2, "line 2 holds a key with a blank", "serve", "--check", *MODEL, "--api-key-file", bad)
        bad.write_text('\napi_keys = ["good", "schl\\u00fcssel"]\n')
        self.check_fails(2, "line 2: 'api_keys' holds a key with a blank, a control character or one beyond ASCII", "serve",
                         "--check", "--config", bad, *MODEL)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.check_taken(taken.getsockname()[1])

    def test_keys_that_others_can_read_are_warned_of(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        upstream = ("--upstream", "http://127.0.0.1:9/v1", "--upstream-key-file", keys)
        for arguments in (("--api-key-file", keys), upstream):
            for mode, told in ((0o644, f"warning: the key in '{keys}' can be read by every user"), (0o640, "")):
                keys.chmod(mode)
                code, _, errors = self.run_it("serve", "--check", *MODEL, *arguments)
                self.assertEqual(code, 0, errors)
                self.assertEqual("warning: " in errors, bool(told), errors)
                self.assertIn(told, errors)

    def test_mistakes_with_kokoro(self):
        """Whose files alone are looked at: the model need not be one."""
        kokoro = self.folder / "kokoro"
        (kokoro / "voices").mkdir(parents=True)
        (kokoro / "model.onnx").write_bytes(b"x")
        voice = bytes(510 * 4 * 8)
        for name in ("af_heart", "ef_dora"):
            (kokoro / f"voices/{name}.bin").write_bytes(voice)
        model = ["--check", "--recognition-model", "", "--speech-model", kokoro]
        self.check_fails(3, "the English lexicon is not installed", "serve", *model)
        (kokoro / "g2p").mkdir()
        (kokoro / "g2p/us_gold.json").write_text("{}")
        self.assertEqual(self.run_it("serve", *model)[0], 0)
        for precision in ("bf16", "int4"):
            self.check_fails(5, f"Kokoro is computed in int8 or f32, not in {precision}", "serve", *model, "--precision", precision)
        self.check_fails(3, "voice 'carl' is not installed", "serve", *model, "--voice", "af_heart:0.5+carl:0.5")
        self.check_fails(5, "'ef_dora' speaks Spanish", "serve", *model, "--voice", "ef_dora")
        (kokoro / "own.bin").write_bytes(voice[:-1])
        self.check_fails(4, "voice 'x' has 16319 bytes", "serve", *model, "--voices", f"x={kokoro / 'own.bin'}")
        (kokoro / "own.bin").write_bytes(voice)
        self.assertEqual(self.run_it("serve", *model, "--voices", f"x={kokoro / 'own.bin'}", "--voice", "x")[0], 0)

    def check_taken(self, port):
        code, _, errors = self.run_it("serve", "--port", port, *MODEL)
        self.assertEqual(code, 8)
        self.assertIn(f"cannot listen on 127.0.0.1 port {port}", errors)


if __name__ == "__main__":
    unittest.main()
