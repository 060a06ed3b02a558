"""/v2/decode asked by a client that others wrote, websockets, and plain HTTP."""
import contextlib
import json
import random
import threading
import unittest

import websockets
from websockets.sync.client import connect

from program import DATA, tiny_whisper, wav
from server import Server

TRANSDUCER = DATA / "transducer/hybrid_streaming.nemo"
END, KEEPALIVE = b"\x00", b"\x01"


def noise(seconds, seed=1):
    """s16, 16 kHz."""
    samples = random.Random(seed)
    return b"".join(samples.randrange(-9000, 9000).to_bytes(2, "little", signed=True) for _ in range(int(16000 * seconds)))


class Decode(Server):
    """With small random models: what they hear makes no sense, but is what the command line hears."""

    def start_hearing(self, *arguments, model=TRANSDUCER, slots=2):
        self.model = model
        self.start_server("--recognition-slots", slots, *arguments, model=["--speech-model", "", "--recognition-model", model])

    def stream(self, query="", model=None, **options):
        return connect(f"ws://{self.host}:{self.port}/v2/decode/stream/{model or self.model.stem}{query}", compression=None,
                       max_size=None, open_timeout=60, close_timeout=2, **options)

    def hear(self, client):
        return json.loads(client.recv(timeout=60))

    def hear_to_the_end(self, client):
        """All messages, and the code that the connection was closed with."""
        heard = []
        with self.assertRaises(websockets.exceptions.ConnectionClosed) as caught:
            while True:
                heard.append(self.hear(client))
        return heard, caught.exception.rcvd.code if caught.exception.rcvd else None

    def say(self, client, sound, step, end=END):
        for at in range(0, len(sound), step):
            client.send(sound[at:at + step])
        client.send(end)

    def words(self, sound, step=3200, **options):
        with self.stream(**options) as client:
            self.say(client, sound, step)
            heard, code = self.hear_to_the_end(client)
        self.assertEqual((heard[-1]["status"], code), ("COMPLETE", 1000), heard[-1])
        return " ".join(heard[-1]["transcription"].split())

    def transcribed(self, sound):
        """By the command line."""
        code, output, errors = self.run_it("transcribe", "--model", self.model, "--raw", "s16", "--rate", "16000", "--stream",
                                           text=sound)
        self.assertEqual((code, errors), (0, ""))
        return " ".join(output.decode().split())

    def free(self):
        return self.free_slots("recognition")


class Stream(Decode):
    def test_pieces_of_any_size_are_heard_as_the_command_line_hears(self):
        for model in (TRANSDUCER, tiny_whisper(self.folder / "tiny")):
            self.start_hearing("--decode-messages-per-s", "1000000", model=model)
            sound = noise(2.3)
            expected = self.transcribed(sound)
            self.assertGreater(len(expected), 5)
            for step in (66, 2050, 3200, len(sound)):
                with self.stream("?opaque=Confidential+words") as client:
                    self.say(client, sound, step)
                    heard, code = self.hear_to_the_end(client)
                self.assertEqual(code, 1000)
                last = heard.pop()
                self.assertEqual((last["status"], " ".join(last["transcription"].split())), ("COMPLETE", expected))
                self.assertEqual((last["metadata"]["audio_length_seconds"], last["opaque"]), (2.3, "Confidential words"))
                self.assertGreater(last["metadata"]["processing_time_ms"], 0)
                self.assertEqual({message["status"] for message in heard} - {"ACTIVE"}, set(), heard)
                partials = [message["transcription"] for message in heard]
                self.assertTrue(all(one != other for one, other in zip(partials, partials[1:])), partials)
                if model == TRANSDUCER:
                    self.assertTrue(partials)
            self.wait_for(lambda: self.free() == 2)
            self.wait_for(lambda: len(self.logged("stream")) == 4)
            self.assertEqual([(line["stopped"], line["audio_seconds"]) for line in self.logged("stream")], [("done", 2.3)] * 4)
            route = "/v2/decode/stream/{model}"
            self.wait_for(lambda: self.metric(f'syrinx_requests_total{{route="{route}",code="101"}}') == 4)
            told = f'{{model="{self.model.stem}"}}'  # of each second the longest wait, and the end's
            self.wait_for(lambda: self.metric("syrinx_queue_delay_seconds_count" + told) == 4 * 3)
            self.assertIn(f"syrinx_audio_backlog_seconds{told} 0\n", self.request("GET", "/metrics")[2].decode())
            self.check_log_without("stream", expected, "Confidential", route=route)

    def test_keepalive(self):
        self.start_hearing()
        with self.stream() as client:
            client.send(KEEPALIVE)
            self.assertEqual(self.hear(client)["status"], "PAUSED")
            client.send(noise(0.1))
            client.send(KEEPALIVE)
            client.send(KEEPALIVE)
            client.send(END)
            heard, code = self.hear_to_the_end(client)
        self.assertEqual(code, 1000)
        self.assertEqual([message["status"] for message in heard if message["status"] != "ACTIVE"], ["PAUSED", "COMPLETE"])

    def test_other_control_bytes(self):
        self.check_fails(2, "'decode_end_byte' and 'decode_keepalive_byte' are both 1", "serve", "--check", "--decode-end-byte", "1")
        self.start_hearing("--decode-end-byte", "255", "--decode-keepalive-byte", "0")
        with self.stream() as client:
            client.send(b"\x00")
            self.assertEqual(self.hear(client)["status"], "PAUSED")
            client.send(b"\x01")
            self.assertIn("0xff ends the stream", self.hear(client)["message"])
            client.send(b"\xff")
            heard, code = self.hear_to_the_end(client)
        self.assertEqual(([message["status"] for message in heard], code), (["COMPLETE"], 1000))

    def ends_with(self, words, code, *messages):
        with self.stream() as client:
            with contextlib.suppress(websockets.exceptions.ConnectionClosed):
                for message in messages:
                    client.send(message)
            heard, closed = self.hear_to_the_end(client)
        self.assertEqual(closed, code)
        if words:
            self.assertEqual(heard[-1]["status"], "ERROR")
            self.assertIn(words, heard[-1]["message"])
        self.wait_for(lambda: self.free() == 2)

    def test_what_is_wrong_is_said(self):
        self.start_hearing("--max-backlog-s", "3", "--max-message-kb", "100")
        self.ends_with("binary messages", 1003, "hello")
        self.ends_with("at the pace of speech", 1008, noise(3.1))
        self.ends_with(None, 1009, noise(4))
        with self.stream() as client:
            client.send(b"abc")
            told = self.hear(client)
            self.assertEqual(told["status"], "ERROR")
            self.assertIn("3 bytes, and a sample has 2", told["message"])
            client.send(END)
            self.assertEqual(self.hear_to_the_end(client)[0][-1]["status"], "COMPLETE")

    def test_too_many_messages(self):
        self.start_hearing("--decode-messages-per-s", "1", "--max-backlog-s", "3")
        self.ends_with("more messages than 1 a second", 1008, *[KEEPALIVE] * 500)

    def test_idle_streams_are_closed(self):
        self.start_hearing("--decode-idle-s", "1", slots=1)
        with self.stream() as client:
            heard, code = self.hear_to_the_end(client)
        self.assertEqual(([message["status"] for message in heard], code), (["ERROR"], 1008))
        self.assertIn("1 s", heard[0]["message"])
        self.wait_for(lambda: self.free() == 1)

    def refused(self, status, kind, *arguments, **options):
        with self.assertRaises(websockets.exceptions.InvalidStatus) as caught:
            self.stream(*arguments, **options)
        response = caught.exception.response
        self.assertEqual(response.status_code, status)
        error = json.loads(response.body)
        self.assertEqual((list(error), error["error_type"]), (["error", "error_type"], kind), error)
        return response

    def test_who_may_connect(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        self.start_hearing("--api-key-file", keys, slots=1)
        headers = {"Authorization": "Bearer secret"}
        self.refused(401, "invalid_api_key")
        self.refused(403, "origin_not_allowed", additional_headers=headers, origin="https://evil.example")
        self.refused(404, "model_not_found", model="other", additional_headers=headers)
        self.refused(400, "invalid_request_error", "?opaque=%FF", additional_headers=headers)
        with self.stream(subprotocols=["realtime", "openai-insecure-api-key.secret"]) as client:
            self.assertEqual(client.subprotocol, "realtime")
            full = self.refused(503, "no_free_slot", additional_headers=headers)
            self.assertEqual(full.headers["Retry-After"], "1")
            client.send(END)
            self.assertEqual(self.hear_to_the_end(client)[1], 1000)
        self.assertEqual(self.words(noise(0.5), additional_headers=headers), self.transcribed(noise(0.5)))
        for asked, status in ((headers, 426), ({}, 401)):
            got, told, body = self.request("GET", f"/v2/decode/stream/{self.model.stem}", headers=asked)
            self.assertEqual((got, list(json.loads(body))), (status, ["error", "error_type"]))
            self.assertEqual(told["Upgrade"], "websocket" if status == 426 else None)

    def test_who_leaves_frees_the_slot(self):
        self.start_hearing(slots=1)
        for leave in (lambda client: client.socket.close(), lambda client: client.close()):
            with self.stream() as client:
                client.send(noise(2))
                self.assertEqual(self.hear(client)["status"], "ACTIVE")
                self.assertEqual(self.free(), 0)
                leave(client)
            self.wait_for(lambda: self.free() == 1)
        self.wait_for(lambda: [line["stopped"] for line in self.logged("stream")] == ["cancelled"] * 2)
        self.assertEqual(self.words(noise(0.5)), self.transcribed(noise(0.5)))

    def test_a_neighbour_changes_nothing(self):
        self.start_hearing(slots=4)
        sounds = [noise(2.5, seed) for seed in range(4)]
        alone = [self.words(sound) for sound in sounds]
        self.assertEqual(len(set(alone)), 4)
        together = [None] * 4

        def speak(i):
            together[i] = self.words(sounds[i], step=640 * (i + 1))

        for _ in range(3):
            self.wait_for(lambda: self.free() == 4)
            speakers = [threading.Thread(target=speak, args=(i,)) for i in range(4)]
            for speaker in speakers:
                speaker.start()
            for speaker in speakers:
                speaker.join()
            self.assertEqual(together, alone)

    def test_the_server_goes(self):
        self.start_hearing()
        expected = self.transcribed(noise(1))
        with self.stream() as client:
            client.send(noise(1))
            client.send(KEEPALIVE)
            client.send(KEEPALIVE)
            while self.hear(client)["status"] != "PAUSED":  # all of it has come
                pass
            self.server.terminate()
            heard, code = self.hear_to_the_end(client)
        self.assertEqual((heard[-1]["status"], heard[-1]["message"], code), ("COMPLETE", "the server is going down", 1001))
        self.assertEqual(" ".join(heard[-1]["transcription"].split()), expected)
        self.end_server(terminate=False)


class Batch(Decode):
    BYTES, JSON = "application/octet-stream", "application/json"

    def batch(self, body, kind=BYTES, query="", model=None, headers=()):
        return self.request("POST", f"/v2/decode/batch/{model or self.model.stem}{query}", body,
                            {"Content-Type": kind, **dict(headers)})

    def numbers(self, sound, **fields):
        return json.dumps({"audio_buffer": list(sound), **fields})

    def recorded(self, sound):
        """By the command line, as a recording."""
        path = self.folder / "sound.wav"
        path.write_bytes(wav(sound))
        code, output, errors = self.run_it("transcribe", path, "--model", self.model)
        self.assertEqual((code, errors), (0, ""))
        return " ".join(output.decode().split())

    def check_answer(self, answer, expected, samples, encoded, **fields):
        status, _, body = answer
        self.assertEqual(status, 200, body)
        told = json.loads(body)
        self.assertEqual((" ".join(told.pop("transcription").split()), told.pop("status")), (expected, "COMPLETE"))
        metadata = told.pop("metadata")
        self.assertGreater(metadata.pop("tokens"), 0)
        self.assertEqual(metadata, {"audio_length_samples": samples, "features_length": samples // 160, "encoded_length": encoded})
        self.assertEqual(told, fields)

    def test_recordings_are_heard_as_the_command_line_hears(self):
        for model, encoded in ((TRANSDUCER, 30), (tiny_whisper(self.folder / "tiny"), 115)):
            self.start_hearing(model=model)
            sound = noise(2.3)
            expected = self.recorded(sound)
            self.assertGreater(len(expected), 5)
            self.check_answer(self.batch(sound), expected, 36800, encoded)
            self.check_answer(self.batch(sound, query="?opaque=of%20the+query", model="whisper-1"), expected, 36800, encoded,
                              opaque="of the query")
            self.check_answer(self.batch(self.numbers(sound, opaque="m\u00fc", _description="x", _incremental=True, _model="y"),
                                         kind=self.JSON), expected, 36800, encoded, opaque="m\u00fc")
            self.wait_for(lambda: self.free() == 2)
            self.wait_for(lambda: [line["stopped"] for line in self.logged("transcription")] == ["done"] * 3)
            self.end_server()

    def refused(self, status, words, answer):
        got, headers, body = answer
        self.assertEqual(got, status, body)
        error = json.loads(body)
        self.assertEqual(list(error), ["error", "error_type"], error)
        self.assertIn(words, error["error"])
        return headers

    def test_what_is_wrong_is_said(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        self.start_hearing("--api-key-file", keys, "--decode-max-batch-s", "2", "--max-upload-mb", "1", slots=1)
        self.refused(401, "no valid API key", self.batch(noise(1)))
        key = {"Authorization": "Bearer secret"}
        self.refused(403, "may not ask", self.batch(noise(1), headers={**key, "Origin": "https://evil.example"}))
        # As websocket-client of Python says it of whatever server it asks; no browser has a key of itself.
        named = {**key, "Host": "asr.example", "Origin": "https://asr.example"}
        self.refused(415, "application/octet-stream", self.batch(noise(1), kind="text/plain", headers=named))
        self.refused(404, "there is no model 'other'", self.batch(noise(1), model="other", headers=key))
        self.refused(415, "application/octet-stream", self.batch(noise(1), kind="text/plain", headers=key))
        for body, kind, words in ((b"abc", self.BYTES, "whole ones"), (b"", self.BYTES, "no sound"),
                                  (self.numbers(noise(2.1)), self.JSON, "longer than 2 s"),
                                  ("{", self.JSON, "JSON"), ('{"audio_buffer": [256]}', self.JSON, "element 0"),
                                  (self.numbers(b"ab", opaque="x" * 10001), self.JSON, "'opaque' has 10001 characters"),
                                  (self.numbers(b"ab", model="x"), self.JSON, "no field 'model'")):
            self.refused(400, words, self.batch(body, kind=kind, headers=key))
        self.refused(413, "more than 1 MB, which is what the server's 'max_upload_mb'", self.batch(b" " * (2 << 20), kind=self.JSON, headers=key))
        self.refused(413, "64000 bytes, which is what the server's 'decode_max_batch_s'", self.batch(noise(2.1), headers=key))
        with self.stream(additional_headers=key) as client:
            headers = self.refused(503, "the only slot is busy", self.batch(noise(1), headers=key))
            self.assertEqual(headers["Retry-After"], "1")
            client.send(END)
            self.assertEqual(self.hear_to_the_end(client)[1], 1000)
        self.assertEqual(self.batch(noise(1), headers=key)[0], 200)

    def test_what_comes_too_late(self):
        self.start_hearing("--stalled-reader-s", "1")
        slow = self.connect()
        slow.sendall(f"POST /v2/decode/batch/{self.model.stem} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {self.BYTES}\r\n"
                     "Content-Length: 1000\r\n\r\nabcd".encode())
        heard = b""
        while not heard.endswith(b"}"):
            part = slow.recv(10000)
            self.assertTrue(part, heard)
            heard += part
        slow.close()
        self.assertTrue(heard.startswith(b"HTTP/1.1 408 "), heard)
        self.assertEqual(list(json.loads(heard.partition(b"\r\n\r\n")[2])), ["error", "error_type"])


if __name__ == "__main__":
    unittest.main()
