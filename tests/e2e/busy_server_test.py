"""How a server ends of which every slot and session is taken at once; clients that go in the midst of a frame."""
import contextlib
import http.client
import json
import random
import socket
import unittest

import websockets
from websockets.sync.client import connect

from program import DATA, wav
from realtime_clients_test import HANDSHAKE, Realtime
from server import ENGLISH, LONG, form

TRANSDUCER = DATA / "transducer/hybrid_streaming.nemo"
MODEL = ["--recognition-model", TRANSDUCER, "--speech-model", ENGLISH, "--voices",
         f"ann={ENGLISH / 'voice.safetensors'}", "--voice", "ann"]
STREAM = f"/v2/decode/stream/{TRANSDUCER.stem}"
KEEPALIVE = b"\x01"
# Of a machine that stands still for as long as it likes.
PATIENT = [word for name in ("stalled-reader", "idle-timeout", "request-timeout", "upload-timeout", "text-timeout",
                             "decode-idle", "session-idle") for word in (f"--{name}-s", "3600")]
RESET = b"\1\0\0\0\0\0\0\0"  # SO_LINGER: on, for no time


def noise(seconds):
    """s16, 16 kHz."""
    samples = random.Random(1)
    count = int(16000 * seconds)
    return b"".join(samples.randrange(-9000, 9000).to_bytes(2, "little", signed=True) for _ in range(count))


class Busy(Realtime):
    def start_server(self, *arguments):
        super().start_server("--wyoming-port", "0", "--speech-slots", "3", "--recognition-slots", "2",
                             "--max-sessions", "2", *PATIENT, *arguments, model=MODEL)

    def free(self):
        return self.free_slots(), self.free_slots("recognition"), 2 - self.sessions()

    def transcribed(self, sound, *arguments):
        code, output, errors = self.run_it("transcribe", "--model", TRANSDUCER, *arguments, text=sound)
        self.assertEqual((code, errors), (0, ""))
        return " ".join(output.decode().split())

    def stream(self):
        return connect(f"ws://{self.host}:{self.port}{STREAM}", compression=None, max_size=None, open_timeout=120,
                       ping_interval=None, close_timeout=2)


class Ending(Busy):
    @contextlib.contextmanager
    def all_busy(self):
        """Two listeners over HTTP and a session that is spoken to, a session that asks for nothing, a stream and
        somebody over Wyoming who are heard, and half of an upload."""
        with contextlib.ExitStack() as all_of_them:
            self.listeners = [all_of_them.enter_context(self.connect(receive_bytes=1 << 17)) for _ in range(2)]
            for listener in self.listeners:
                self.ask(listener, response_format="pcm")
            self.speaking = all_of_them.enter_context(self.session(sock=self.connect(receive_bytes=1 << 17)))
            self.idle = all_of_them.enter_context(self.session())
            self.ask_for(self.speaking, LONG)
            self.hear_until(self.speaking, "response.output_audio.delta")
            # While there is a slot: it would be refused at once.
            self.upload = all_of_them.enter_context(self.connect())
            body = form(wav(noise(1)))
            self.upload.sendall(b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"
                                b"Content-Type: multipart/form-data; boundary=b\r\n\r\n" % len(body) + body[:-1000])
            self.rest = body[-1000:]
            self.wait_for(lambda: self.metric("syrinx_upload_bytes") == len(body) - 1000)
            self.heard = all_of_them.enter_context(self.stream())
            self.heard.send(noise(1))
            for _ in range(2):  # the first one may come in the midst of the sound
                self.heard.send(KEEPALIVE)
            while json.loads(self.heard.recv(timeout=120))["status"] != "PAUSED":  # all of it has come
                pass
            self.wyoming = all_of_them.enter_context(self.hold_recognition())
            self.wait_for(lambda: self.free() == (0, 0, 0))
            self.check_refused(503, "no_free_slot", None, "GET", "/ready?slots=1")
            yield

    def to_the_end(self, client):
        """Messages of a WebSocket, and the code that it was closed with."""
        heard = []
        with self.assertRaises(websockets.exceptions.ConnectionClosed) as caught:
            while True:
                heard.append(json.loads(client.recv(timeout=120)))
        return heard, caught.exception.rcvd.code if caught.exception.rcvd else None

    def test_all_that_is_under_way_ends_as_it_should(self):
        self.start_server("--drain-timeout-s", "3600")
        speech, words = self.spoken(LONG), self.transcribed(noise(1), "--raw", "s16", "--rate", "16000", "--stream")
        self.assertGreater(len(speech), 1 << 20)
        recording = self.folder / "said.wav"
        recording.write_bytes(wav(noise(1)))
        recorded = self.transcribed(b"", recording)
        self.assertTrue(words and recorded)
        with self.all_busy():
            self.server.terminate()
            self.assertEqual(self.to_the_end(self.idle)[1], 1001)
            self.check_refused(503, "draining", None, "GET", "/ready")
            self.check_refused(503, "draining", None, "POST", "/v1/audio/speech", {"input": "No more."})
            heard, code = self.to_the_end(self.heard)
            self.assertEqual((heard[-1]["status"], code), ("COMPLETE", 1001))
            self.assertEqual(" ".join(heard[-1]["transcription"].split()), words)
            self.upload.sendall(self.rest)  # the stream's slot is free
            reply = http.client.HTTPResponse(self.upload)
            reply.begin()
            self.assertEqual((reply.status, " ".join(json.loads(reply.read())["text"].split())), (200, recorded))
            self.assertEqual(self.say_over_wyoming(noise(1)), recorded)
            events, code = self.to_the_end(self.speaking)
            self.assertEqual(([event["type"] for event in events[-2:]], code), (["response.done", "error"], 1001))
            self.assertEqual((events[-2]["response"]["status"], events[-1]["error"]["code"]), ("completed", "draining"))
            for listener in self.listeners:
                reply = http.client.HTTPResponse(listener)
                reply.begin()
                self.check_same(reply.read(), speech)
            self.end_server(terminate=False)

    def say_over_wyoming(self, sound):
        """What is understood; the server closes behind it."""
        self.wyoming.sendall(b'{"type": "audio-chunk", "data": {"rate": 16000, "width": 2, "channels": 1}, '
                             b'"payload_length": %d}\n' % len(sound) + sound + b'{"type": "audio-stop"}\n')
        with self.wyoming.makefile("rb") as events:
            while header := json.loads(events.readline()):
                data = {**header.get("data", {}), **json.loads(events.read(header.get("data_length", 0)) or b"{}")}
                if header["type"] == "transcript":
                    self.assertIn(b"transcript-stop", events.read())
                    return " ".join(data["text"].split())

    def test_it_ends_in_the_time_that_it_has(self):
        """Though nobody takes or brings anything any more; and at once where it has been told so twice."""
        for twice in False, True:
            self.start_server("--drain-timeout-s", "3600" if twice else "0.2")
            with self.all_busy():
                self.server.terminate()
                if twice:
                    self.assertEqual(self.to_the_end(self.idle)[1], 1001)  # so it has heard the first
                self.end_server(terminate=twice, status=-15 if twice else 0)


class TornFrames(Busy):
    """The first bytes of a frame, then a reset."""

    def open(self, path):
        connection = self.connect(receive_bytes=4096)
        connection.sendall(HANDSHAKE.replace(b"/v1/realtime", path.encode()).replace(b"Host: x", b"Host: localhost"))
        stream = connection.makefile("rb")
        self.assertTrue(stream.readline().startswith(b"HTTP/1.1 101 "))
        while stream.readline() != b"\r\n":
            pass
        return connection, stream

    def message(self, payload, is_text=True):
        size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
        return (b"\x81" if is_text else b"\x82") + size + b"\0\0\0\0" + payload

    def frames(self, stream):
        """Kind and payload of each."""
        while kind := stream.read(1):
            size = stream.read(1)[0]
            if size > 125:
                size = int.from_bytes(stream.read(2 if size == 126 else 8), "big")
            yield kind[0], stream.read(size)

    def tear(self, connection, frames, frame):
        """A ping goes in front, all in one segment: with its answer the server has read what came with it."""
        connection.sendall(b"\x89\x80\0\0\0\0" + frame[:len(frame) // 2])
        self.assertTrue(any(kind == 0x8a for kind, _ in frames))
        self.assertNotEqual(self.free(), (3, 2, 2))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.close()

    def check_all_is_free(self, descriptors):
        self.wait_for(lambda: self.free() == (3, 2, 2))
        self.wait_for(lambda: self.metric("process_open_fds") <= descriptors)

    def test_sessions(self):
        self.start_server()
        alone, descriptors = self.spoken(), self.metric("process_open_fds")
        asked = json.dumps({"type": "response.create", "response": {"input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": LONG}]}]}}).encode()
        for speaks in False, True:
            for _ in range(3):
                connection, stream = self.open("/v1/realtime")
                with stream:
                    frames = self.frames(stream)
                    self.assertIn(b"session.created", next(frames)[1])
                    if speaks:
                        connection.sendall(self.message(asked))
                        self.assertTrue(any(b"response.output_audio.delta" in payload for _, payload in frames))
                        self.assertEqual(self.free(), (2, 2, 1))
                    self.tear(connection, frames, self.message(asked[:1000]))
                self.check_all_is_free(descriptors)
        self.wait_for(lambda: self.metric('syrinx_generation_stopped_total{reason="cancelled"}') == 3)
        self.check_same(self.spoken(), alone)

    def test_streams(self):
        self.start_server()
        self.assertTrue(words := self.transcribed(noise(1), "--raw", "s16", "--rate", "16000", "--stream"))
        descriptors = self.metric("process_open_fds")
        for _ in range(3):
            connection, stream = self.open(STREAM)
            with stream:
                connection.sendall(self.message(noise(0.5), is_text=False))
                self.wait_for(lambda: self.free_slots("recognition") == 1)
                self.tear(connection, self.frames(stream), self.message(noise(0.05), is_text=False))
            self.check_all_is_free(descriptors)
        with self.stream() as client:
            client.send(noise(1))
            client.send(b"\0")
            last = None
            with contextlib.suppress(websockets.exceptions.ConnectionClosed):
                while True:
                    last = json.loads(client.recv(timeout=120))
        self.assertEqual((last["status"], " ".join(last["transcription"].split())), ("COMPLETE", words))


if __name__ == "__main__":
    unittest.main()
