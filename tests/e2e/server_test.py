"""`syrinx serve` through plain sockets: what it answers, what it refuses, and what it survives."""
import base64
import http.client
import json
import signal
import socket
import time
import unittest

from program import DATA, Program, tiny_whisper, tone, wav
from server import ENGLISH, LONG, MODEL, Server, form


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
        self.assertEqual(events[-1], {"type": "speech.audio.done", "usage": {
            "input_tokens": 12, "output_tokens": frames, "total_tokens": 12 + frames}})

    def test_voices_and_models_by_their_names(self):
        self.start_server("--voice-names", "aunt=bob")
        bob = self.spoken(voice="bob")
        self.check_same(self.spoken(voice="aunt"), bob)
        self.check_same(self.spoken(voice={"id": "bob"}), bob)
        for name in ("ann", "alloy", "verse"):
            self.check_same(self.spoken(voice=name, model="tts-1"), self.spoken(model="english"))
        voices = json.loads(self.request("GET", "/v1/audio/voices")[2])["voices"]
        self.assertEqual([(voice["id"], voice["model"], voice["kind"]) for voice in voices],
                         [("ann", "english", "cloned"), ("bob", "english", "cloned")])
        models = json.loads(self.request("GET", "/v1/models")[2])
        self.assertEqual([(model["id"], model["object"]) for model in models["data"]], [("english", "model")])
        speech = "POST", "/v1/audio/speech"
        self.check_refused(404, "model_not_found", "model", *speech, {"input": "x", "model": "whisper-1"})
        for path in (str(ENGLISH / "voice.safetensors"), "../english/voice", "voice.safetensors", "hf://a/b/c.wav", "carl"):
            self.check_refused(404, "voice_not_found", "voice", *speech, {"input": "x", "voice": path})

    def test_without_a_default_the_first_voice_speaks(self):
        self.start_server(model=MODEL[:MODEL.index("--voice")])
        expected = self.spoken(voice="ann")
        for fields in ({}, {"voice": "alloy"}, {"voice": ""}):
            self.check_same(self.spoken(**fields), expected)

    def test_misuses_are_named(self):
        self.start_server("--max-text-characters", "20")
        speech = "POST", "/v1/audio/speech"
        for param, code, body in (("input", None, {}), ("input", "string_above_max_length", {"input": "x" * 21}),
                                  ("speed", None, {"input": "Hello.", "speed": 2}),
                                  ("response_format", None, {"input": "x", "response_format": "aac"}),
                                  ("pitch", "unknown_parameter", {"input": "x", "pitch": 1}),
                                  (None, "invalid_json", b"{"), (None, "invalid_json", b"\xff\xfe")):
            self.check_refused(400, code, param, *speech, body)
        _, message = self.check_refused(400, None, "input", *speech, {"input": "\u4f60\u597d"})
        self.assertIn("nothing to say", message)
        self.assertEqual(self.free_slots(), 4)
        sound = self.spoken("Still here.")
        self.assertTrue(sound and len(sound) % 3840 == 0, len(sound))


class Slots(Server):
    def test_a_full_server_refuses_and_a_client_that_leaves_makes_room(self):
        self.start_server("--speech-slots", "1")
        with self.connect(receive_bytes=4096) as first:
            self.ask(first)
            self.assertTrue(first.recv(100).startswith(b"HTTP/1.1 200 OK\r\n"))
            self.wait_for(lambda: self.metric('syrinx_slots{model="english",state="busy"}') == 1)
            headers, message = self.check_refused(503, "no_free_slot", None, "POST", "/v1/audio/speech", {"input": "x"})
            self.assertEqual(headers["Retry-After"], "1")
            self.assertIn("all 1 slots are busy", message)
            self.check_refused(503, "no_free_slot", None, "GET", "/ready?slots=1")
            self.assertEqual(self.request("GET", "/ready")[0], 200)
            self.assertEqual(self.request("GET", "/health")[0], 200)
        self.wait_for(lambda: self.free_slots() == 1, seconds=2)
        self.assertEqual(self.request("GET", "/ready?slots=1")[0], 200)
        for _ in range(20):  # free before the client hears the end
            self.spoken()
        self.assertEqual(self.metric('syrinx_rejected_total{reason="no_free_slot"}'), 1)
        self.assertEqual(self.metric('syrinx_generation_stopped_total{reason="cancelled"}'), 1)
        self.assertEqual(self.metric('syrinx_requests_total{route="/v1/audio/speech",code="499"}'), 1)

    def test_half_closed_and_reset_connections_make_room(self):
        self.start_server("--speech-slots", "2")
        half, reset = self.connect(receive_bytes=4096), self.connect(receive_bytes=4096)
        for connection in (half, reset):
            self.ask(connection)
            connection.recv(100)
        half.shutdown(socket.SHUT_WR)
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        reset.close()
        self.wait_for(lambda: self.free_slots() == 2, seconds=2)
        half.close()

    def test_a_stalled_reader_is_cut_and_others_lose_nothing(self):
        self.start_server("--speech-slots", "2", "--stalled-reader-s", "2")
        alone = self.spoken()
        with self.connect(receive_bytes=4096) as stalled:
            self.ask(stalled)
            stalled.recv(100)
            self.check_same(self.spoken(), alone)
            self.assertEqual(self.free_slots(), 1)
            self.wait_for(lambda: self.free_slots() == 2)
            self.check_same(self.spoken(), alone)

    def test_a_slow_reader_gets_all(self):
        self.start_server("--stalled-reader-s", "2")
        expected = self.spoken(LONG)
        self.assertGreater(len(expected), 1 << 20)
        for stream in True, False:
            with self.connect(receive_bytes=1 << 14) as slow:
                self.ask(slow, response_format="pcm", stream=stream)
                reply = http.client.HTTPResponse(slow)
                reply.begin()
                begun, body = time.monotonic(), b""
                while part := reply.read1(1 << 15):
                    body += part
                    if time.monotonic() - begun < 3:
                        time.sleep(0.05)
            self.check_same(body, expected)

    def test_a_client_that_sends_more_and_leaves_makes_room(self):
        self.start_server("--speech-slots", "1")
        for stream in True, False:
            with self.connect() as leaves:
                self.ask(leaves, 2 * LONG, response_format="pcm", stream=stream)
                leaves.sendall(b"\r\n")
            self.wait_for(lambda: self.free_slots() == 1)
        self.assertEqual(self.metric('syrinx_generation_stopped_total{reason="cancelled"}'), 2)

    def test_streams_at_once_have_the_samples_of_streams_alone(self):
        self.start_server("--speech-slots", "3")
        alone = [self.spoken(voice=voice, seed=i) for i, voice in enumerate(("ann", "bob", "ann"))]
        connections = [self.connect() for _ in alone]
        for i, (connection, voice) in enumerate(zip(connections, ("ann", "bob", "ann"))):
            self.ask(connection, "Hello there.", response_format="pcm", voice=voice, seed=i)
        for connection, expected in zip(connections, alone):
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            self.check_same(reply.read(), expected)
            connection.close()


class Transport(Server):
    def raw(self, data, expect=b"HTTP/1.1 400 Bad Request\r\n"):
        """Sends bytes; the answer until the server closes."""
        with self.connect() as connection:
            connection.sendall(data)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        self.assertTrue(answer.startswith(expect), answer)
        return answer

    def test_requests_one_after_another_on_a_connection(self):
        self.start_server()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        for _ in range(3):
            connection.request("POST", "/v1/audio/speech", json.dumps({"input": "Hello.", "response_format": "pcm"}))
            reply = connection.getresponse()
            sound = reply.read()
            self.assertEqual((reply.status, len(sound) % 3840), (200, 0))
            self.assertGreater(len(sound), 0)
            connection.request("GET", "/nowhere")
            reply = connection.getresponse()
            self.assertEqual((reply.status, json.loads(reply.read())["error"]["code"]), (404, "unknown_url"))
        connection.close()
        with self.connect() as connection:  # sent ahead
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
            answer = b""
            while answer.count(b"\"ok\"") < 3:
                answer += connection.recv(65536)
        body = b'{"input": "Hello.", "response_format": "pcm"}'
        speech = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        self.raw(speech + b"\r\nGET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK\r\n")

    def test_older_clients(self):
        self.start_server()
        answer = self.raw(b"GET /health HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK\r\n")
        self.assertIn(b"Connection: close\r\n", answer)
        body = b'{"input": "Hello there.", "response_format": "pcm"}'
        answer = self.raw(b"POST /v1/audio/speech HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
                          b"HTTP/1.1 200 OK\r\n")
        head, _, sound = answer.partition(b"\r\n\r\n")
        self.assertNotIn(b"chunked", head)
        self.check_same(sound, self.spoken())

    def test_what_is_no_request(self):
        self.start_server()
        for data in (b"hello\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 3,
                     b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                     b"POST /v1/audio/speech HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            self.raw(data)
        self.raw(b"GET / HTTP/1.1\r\nX: " + b"x" * 17000 + b"\r\n\r\n", b"HTTP/1.1 431 ")
        self.raw(b"GET /" + b"x" * 17000 + b" HTTP/1.1\r\n\r\n", b"HTTP/1.1 431 ")
        chunked = b"GET /health HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        for behind in (b"0\r\nX: " + b"x" * 70000, b"0\r\n" + b"x" * 70000 + b": x", b"0;a=" + b"x" * 70000,
                       b"0\r\n" + b"X: y\r\n" * 15000):
            self.raw(chunked + behind + b"\r\n\r\n", b"HTTP/1.1 431 ")
        for encoding in (b"gzip", b"xchunked", b"gzip, chunked"):
            self.raw(b"GET /health HTTP/1.1\r\nTransfer-Encoding: " + encoding + b"\r\n\r\n0\r\n\r\n")
        self.raw(b"GET /health HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        self.assertEqual(self.request("HEAD", "/health")[2], b"")
        headers, _ = self.check_refused(405, None, None, "GET", "/v1/audio/speech")
        self.assertEqual(headers["Allow"], "POST")
        for path in ("/", "//health", "/health/", "/v1/audio/../../health", "/%68ealth", "*"):
            self.check_refused(404, "unknown_url", None, "GET", path)

    def test_bodies_too_long(self):
        self.start_server("--max-body-kb", "1")
        big = b'{"input": "' + b"x" * 2000 + b'"}'
        self.check_refused(413, None, None, "POST", "/v1/audio/speech", big)
        self.check_refused(413, None, None, "GET", "/health", b"x")
        chunks = b"400\r\n" + b"x" * 1024 + b"\r\n"
        self.raw(b"POST /v1/audio/speech HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + 3 * chunks + b"0\r\n\r\n",
                 b"HTTP/1.1 413 ")
        self.raw(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"HTTP/1.1 413 ")
        body = b'{"input": "Hello.", "response_format": "pcm"}'
        answer = self.raw(b"POST /v1/audio/speech HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" %
                          len(body) + body + b"\r\n0\r\n\r\n", b"HTTP/1.1 200 OK\r\n")
        self.assertIn(b"audio/pcm", answer)

    def test_a_client_that_asks_before_it_sends(self):
        self.start_server()
        head = b"POST /v1/audio/speech HTTP/1.1\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        body = b'{"input": "Hello.", "response_format": "pcm"}'
        with self.connect() as connection:
            connection.sendall(head % len(body))
            self.assertEqual(connection.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(body)
            self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 200 OK\r\n"))
        self.raw(head % 10**9, b"HTTP/1.1 413 ")

    def test_slow_and_silent_clients_are_cut(self):
        self.start_server("--idle-timeout-s", "0.5", "--request-timeout-s", "0.5")
        silent, slow = self.connect(), self.connect()
        slow.sendall(b"GET /hea")
        late = self.connect()
        late.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        begun = time.monotonic()
        self.assertEqual(silent.recv(100), b"")
        for connection in (slow, late):
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            self.assertEqual((reply.status, reply.headers["Connection"]), (408, "close"))
            self.assertIn("not come whole within 0.5 s", json.loads(reply.read())["error"]["message"])
            self.assertEqual(connection.recv(100), b"")
        for connection in (silent, slow, late):
            connection.close()
        self.assertLess(time.monotonic() - begun, 5)
        with self.connect() as leaves:
            leaves.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        counted = 'syrinx_requests_total{route="%s",code="%d"}'
        self.wait_for(lambda: self.metric(counted % ("/v1/audio/speech", 499)) == 1)
        self.assertEqual(self.metric(counted % ("/v1/audio/speech", 408)), 1)
        self.assertEqual(self.metric(counted % ("other", 408)), 1)

    def test_many_connections_and_a_limit_to_them(self):
        self.start_server("--max-connections-per-address", "20")
        open_now = [self.connect() for _ in range(20)]
        for connection in open_now:
            connection.sendall(b"G")
        with self.connect() as one_more:
            self.assertTrue(one_more.recv(100).startswith(b"HTTP/1.1 503 "))
        for connection in open_now:
            connection.close()
        self.wait_for(lambda: self.status_or_none() == 200)
        for _ in range(500):
            self.connect().close()
        self.wait_for(lambda: self.status_or_none() == 200)
        begun = time.monotonic()
        for _ in range(50):  # as load balancers look whether somebody listens
            reset = self.connect()
            reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            reset.close()
        self.wait_for(lambda: self.status_or_none() == 200)
        self.assertLess(time.monotonic() - begun, 2)
        before = self.metric("process_open_fds")
        for _ in range(100):
            with self.connect() as connection:
                connection.sendall(b"POST / HTTP/1.1\r\n")
        self.wait_for(lambda: self.metric("process_open_fds") <= before)

    def status_or_none(self):
        try:
            return self.request("GET", "/health")[0]
        except (OSError, http.client.HTTPException):
            return None

    def test_request_ids(self):
        self.start_server()
        ours = self.request("GET", "/health")[1]["X-Request-Id"]
        self.assertRegex(ours, "^[0-9a-f]{32}$")
        self.assertEqual(self.request("GET", "/health", headers={"X-Request-Id": "mine-1"})[1]["X-Request-Id"], "mine-1")
        self.assertRegex(self.request("GET", "/health", headers={"X-Request-Id": "a b"})[1]["X-Request-Id"], "^[0-9a-f]{32}$")


class Access(Server):
    def test_keys(self):
        keys = self.folder / "keys"
        keys.write_text("one\ntwo\n")
        self.start_server("--api-key-file", keys)
        for path in ("/health", "/ready"):
            self.assertEqual(self.request("GET", path)[0], 200)
        for path in ("/metrics", "/v1/models", "/v1/audio/voices"):
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


class Life(Server):
    def test_what_is_under_way_may_end_and_nothing_else_begins(self):
        self.start_server()
        expected = self.spoken(LONG)
        idle = self.connect()
        with self.connect(receive_bytes=4096) as connection:
            self.ask(connection, response_format="pcm")
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            self.server.terminate()
            self.assertEqual(idle.recv(1), b"")
            self.assertTrue(self.refuses_connections())
            self.check_same(reply.read(), expected)
        idle.close()
        self.end_server(terminate=False)
        self.assertEqual([line["stopped"] for line in self.logged("speech")], ["eos", "eos"])

    def test_half_a_request_does_not_hold_the_end(self):
        self.start_server()
        with self.connect() as half:
            half.sendall(b"GET /hea")
            self.assertEqual(self.request("GET", "/health")[0], 200)
            begun = time.monotonic()
            self.end_server()
            self.assertLess(time.monotonic() - begun, 10)

    def test_the_end_comes_even_if_a_client_does_not_read(self):
        self.start_server("--drain-timeout-s", "0.2")
        with self.connect(receive_bytes=4096) as connection:
            self.ask(connection)
            connection.recv(100)
            begun = time.monotonic()
            self.end_server()
            self.assertLess(time.monotonic() - begun, 3)

    def test_a_second_signal_ends_at_once(self):
        self.start_server()
        with self.connect(receive_bytes=4096) as connection:
            self.ask(connection)
            connection.recv(100)
            self.server.terminate()
            self.wait_for(lambda: self.refuses_connections())
            self.end_server(status=-signal.SIGTERM)

    def refuses_connections(self):
        connection = socket.socket()
        refused = connection.connect_ex((self.host, self.port)) != 0
        connection.close()
        return refused

    def test_the_log_holds_figures_and_no_texts(self):
        self.start_server()
        self.spoken("Confidential words.")
        self.request("GET", "/secret/path?secret=query")
        self.end_server()
        self.assertNotRegex("".join(self.lines), "(?i)confidential|secret|127.0.0.1:[0-9]+[^/0-9]|ann")
        speech, = self.logged("speech")
        self.assertEqual(list(speech), ["time", "event", "id", "model", "stopped", "characters", "audio_seconds",
                                        "first_audio_ms", "engine_first_audio_ms", "compute_ms"])
        requests = self.logged("request")
        self.assertEqual([(line["route"], line["status"]) for line in requests], [("/v1/audio/speech", 200), ("other", 404)])
        self.assertEqual(requests[0]["id"], speech["id"])

    def test_a_quiet_log(self):
        self.start_server("--log", "off")
        self.spoken()
        self.end_server()
        self.assertEqual(len(self.lines), 2)

    def test_it_listens_on_other_addresses(self):
        self.start_server("--host", "::1")
        self.assertEqual(self.request("GET", "/health")[0], 200)


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

    def test_misuses_are_named(self):
        self.start_recogniser("--max-recording-s", "2")
        post = "POST", "/v1/audio/transcriptions"
        kind = {"Content-Type": "multipart/form-data; boundary=b"}
        good = wav(tone(0.5))
        for status, code, param, fields in (
                (400, None, "prompt", {"prompt": "x"}), (400, None, "language", {"language": "xx"}),
                (404, "model_not_found", "model", {"model": "tts-1"}), (400, None, "keywords", {"keywords[]": "Syrinx"}),
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

    def test_uploads_have_limits_of_their_own(self):
        self.start_recogniser("--max-upload-mb", "1", "--max-uploads-mb", "1", "--upload-timeout-s", "3",
                              "--request-timeout-s", "1")
        head = (b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                b"Content-Length: %d\r\n\r\n")
        self.check_refused(413, None, None, "POST", "/v1/audio/transcriptions", bytes(20 << 20))
        with self.connect() as half:
            half.sendall(head % 1000000)
            self.heard(wav(tone(2)))  # who only says what it will send holds nothing
            half.sendall(bytes(999000))
            self.wait_for(lambda: self.transcribe(wav(tone(2)))[0] == 503)
            self.assertTrue(half.recv(100).startswith(b"HTTP/1.1 408 "))
        self.wait_for(lambda: self.transcribe(wav(tone(2)))[0] == 200)
        self.assertGreater(self.metric('syrinx_rejected_total{reason="uploads_full"}'), 0)

    def first_words(self, sent, expect):
        with self.connect() as connection:
            connection.sendall(sent)
            self.assertTrue(connection.recv(100).startswith(expect))

    def test_uploads_are_refused_before_they_are_sent(self):
        self.start_recogniser("--recognition-slots", "1", "--stalled-reader-s", "0.5")
        head = (b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n"
                b"Content-Length: 1000000\r\nContent-Type: ")
        self.first_words(head + b"text/plain\r\n\r\n", b"HTTP/1.1 415 ")
        kind = b"multipart/form-data; boundary=b\r\n\r\n"
        with self.connect() as silent:
            silent.sendall(head + kind)
            self.assertEqual(silent.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            silent.sendall(b"--b")
            reply = http.client.HTTPResponse(silent)
            reply.begin()
            self.assertEqual(reply.status, 408)
            self.assertIn("nothing of the request's body has come for 0.5 s", json.loads(reply.read())["error"]["message"])
        body = form(wav(tone(1) * 600))
        with self.connect() as first:
            first.sendall(head.replace(b"Expect: 100-continue\r\n", b"").replace(b"1000000", b"%d" % len(body)) + kind + body)
            self.wait_for(lambda: self.free_slots("recognition") == 0)
            self.first_words(head + kind, b"HTTP/1.1 503 ")

    def test_a_full_server_refuses_and_a_client_that_leaves_makes_room(self):
        self.start_recogniser("--recognition-slots", "1")
        body = form(wav(tone(1) * 600))
        with self.connect() as first:
            first.sendall(b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                          b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.wait_for(lambda: self.free_slots("recognition") == 0)
            self.assertEqual(self.transcribe(wav(tone(1)))[0], 503)
            self.assertEqual(self.request("GET", "/ready?slots=recognition")[0], 503)
        self.wait_for(lambda: self.free_slots("recognition") == 1, seconds=5)
        self.heard(wav(tone(1)))
        self.end_server()
        self.assertEqual([line["stopped"] for line in self.logged("transcription")], ["cancelled", "done"])


class Kinds(Server):
    def test_recognition_alone(self):
        self.start_server(model=["--speech-model", "", "--recognition-model", tiny_whisper(self.folder / "tiny")])
        models = json.loads(self.request("GET", "/v1/models")[2])["data"]
        self.assertEqual([(model["id"], model["task"]) for model in models], [("tiny", "automatic-speech-recognition")])
        self.assertEqual((self.free_slots("speech"), self.free_slots("recognition")), (0, 4))
        self.assertEqual(self.request("GET", "/ready?slots=1")[0], 200)
        self.check_refused(404, "model_not_found", "model", "POST", "/v1/audio/speech", {"input": "x"})

    def test_both(self):
        self.start_server("--recognition-model", tiny_whisper(self.folder / "tiny"), "--recognition-slots", "1",
                          model=MODEL[2:])
        models = json.loads(self.request("GET", "/v1/models")[2])["data"]
        self.assertEqual([model["id"] for model in models], ["english", "tiny"])
        self.assertTrue(self.spoken())
        self.assertEqual(self.metric('syrinx_slots{model="tiny",state="free"}'), 1)
        body = form(wav(tone(1) * 600))
        with self.connect() as first:
            first.sendall(b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                          b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.wait_for(lambda: self.free_slots("recognition") == 0)
            self.assertEqual(self.request("GET", "/ready?slots=recognition")[0], 503)
            self.assertEqual(self.request("GET", "/ready?slots=1")[0], 200)  # speech has some


class Settings(Program):
    def test_check_and_print(self):
        code, text, errors = self.run_it("serve", "--print-config", "--port", "1234")
        self.assertEqual((code, errors), (0, ""))
        self.assertIn(b"\nport = 1234\n", text)
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
        self.check_fails(2, "'localhos' is no address", "serve", "--host", "localhos", "--allow-no-key", *MODEL)
        self.check_fails(3, "no voice 'carl'", "serve", "--check", *MODEL, "--voice-names", "x=carl")
        self.check_fails(3, "none.wav", "serve", "--check", *MODEL, "--voices", "x=none.wav")
        self.check_fails(3, "none", "serve", "--check", *MODEL, "--api-key-file", "none")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.check_taken(taken.getsockname()[1])

    def check_taken(self, port):
        code, _, errors = self.run_it("serve", "--port", port, *MODEL)
        self.assertEqual(code, 8)
        self.assertIn(f"cannot listen on 127.0.0.1 port {port}", errors)


if __name__ == "__main__":
    unittest.main()
