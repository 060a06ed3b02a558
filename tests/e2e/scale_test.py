"""Three servers behind a real HAProxy with packaging/scale/haproxy.cfg: more sessions than one of them holds, all slots of
a kind taken, one server killed, one drained."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import struct
import subprocess
import time
import unittest

from program import Program, tiny_whisper, tone, wav
from server import LONG, MODEL, Server, form

HANDSHAKE = ("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
DECODE, REALTIME = "/v2/decode/stream/tiny", "/v1/realtime"
CONFIGURATION = pathlib.Path(__file__).resolve().parents[2] / "packaging/scale/haproxy.cfg"
SLOTS = 2


class WebSocket:
    """On a connection of ours, by hand, with what its handshake was answered: the body is that of a refusal."""

    def __init__(self, connection, path):
        self.connection, self.stream = connection, connection.makefile("rb")
        connection.sendall((HANDSHAKE % path).encode())
        self.status = int(self.stream.readline().split()[1])
        self.headers = http.client.parse_headers(self.stream)
        self.body = b"" if self.status == 101 else self.stream.read(int(self.headers["Content-Length"]))

    def send(self, message):
        """In one frame, binary, with a mask of zeros."""
        size = bytes([0x80 | len(message)]) if len(message) < 126 else b"\xfe" + struct.pack(">H", len(message))
        self.connection.sendall(b"\x82" + size + bytes(4) + message)

    def frames(self):
        """To the closing one, or to the end of a connection that has none."""
        with contextlib.suppress(OSError):
            while head := self.stream.read(2):
                size = struct.unpack(">H", self.stream.read(2))[0] if head[1] == 126 else head[1]
                yield head[0], self.stream.read(size)
                if head[0] == 0x88:
                    return

    def heard(self):
        """The `status` of the last message, and the code that the connection was closed with; or None for either."""
        text, status, code = b"", None, None
        for kind, data in self.frames():
            if kind == 0x88:
                code = struct.unpack(">H", data[:2])[0]
            elif kind & 0x0f in (0, 1):
                text += data
                if kind & 0x80:
                    text, status = b"", json.loads(text).get("status")
        return status, code

    def lives(self):
        """It answers a ping."""
        self.connection.sendall(b"\x89\x80" + bytes(4))
        return any(kind == 0x8a for kind, _ in self.frames())

    def close(self):
        self.stream.close()
        self.connection.close()


def streams(server):
    return SLOTS - server.free_slots("recognition")


def sessions(server):
    return server.metric("syrinx_realtime_sessions")


def looks(server):
    """How often it has said whether it is ready: to HAProxy, which asks each kind of it."""
    return sum(server.metric(f'syrinx_requests_total{{route="/ready",code="{code}"}}') for code in (200, 503))


class Fleet(Program):
    def setUp(self):
        super().setUp()
        self.servers, self.haproxy = [], None
        self.addCleanup(super().tearDown)  # behind the servers, which end behind the clients: who is heard does not end
        recogniser = tiny_whisper(self.folder / "tiny")
        for _ in range(3):
            server = Server()
            server.setUp()
            self.addCleanup(server.tearDown)
            self.servers.append(server)
            # The sessions are longer than what sockets hold: as long as a slow build needs may they drain.
            server.start_server("--speech-slots", SLOTS, "--recognition-slots", SLOTS, "--max-sessions", SLOTS,
                                "--stalled-reader-s", 600, "--drain-timeout-s", 600, "--decode-idle-s", 600, "--idle-timeout-s", 600,
                                "--max-text-characters", 40000, "--recognition-model", recogniser, model=MODEL[2:])
        self.addCleanup(self.end_haproxy)
        self.start_haproxy()

    def tearDown(self):
        """What setUp() has added does it."""

    def end_haproxy(self):
        if self.haproxy is not None:
            self.haproxy.terminate()
            self.haproxy.wait(120)

    def start_haproxy(self, looks="inter 500ms fastinter 100ms downinter 100ms"):
        certificate = self.folder / "both.pem"
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.folder / "key.pem", "-out", certificate,
                               "-days", "2", "-subj", "/CN=localhost"], capture_output=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        certificate.write_text(certificate.read_text() + (self.folder / "key.pem").read_text())
        names = {f"SYRINX_{letter}": f"127.0.0.1:{server.port}" for letter, server in zip("ABC", self.servers)}
        # As it is, but for how long a client may read nothing: a slow machine needs a while for all of them.
        text = CONFIGURATION.read_text()
        for as_it_is, here in (("timeout client 75s", "timeout client 600s"), ("inter 500ms fastinter 100ms downinter 100ms", looks)):
            self.assertIn(as_it_is, text)
            text = text.replace(as_it_is, here)
        configuration = self.folder / "haproxy.cfg"
        configuration.write_text(text)
        with socket.socket() as front:  # which it inherits, so that nobody else takes the port
            front.bind(("127.0.0.1", 0))
            self.port = front.getsockname()[1]
            self.haproxy = subprocess.Popen(
                ["haproxy", "-db", "-f", configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[front.fileno()],
                env={**os.environ, **names, "SYRINX_BIND": f"fd@{front.fileno()}", "SYRINX_CERTIFICATE": str(certificate),
                     "PATH": os.environ["PATH"] + ":/usr/sbin"})
        self.wait_for(self.answers)

    def answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("/health")[0] == 200
        return False

    def connect(self):
        unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=120, context=unchecked)

    def ask(self, path, body=None, headers=()):
        """Status, headers, body."""
        connection = self.connect()
        try:
            connection.request("POST" if body else "GET", path, body, dict(headers))
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def speak(self):
        return self.ask("/v1/audio/speech", json.dumps({"input": "Hello.", "response_format": "pcm"}))

    def transcribe(self, seconds):
        return self.ask("/v1/audio/transcriptions", form(wav(tone(seconds))), {"Content-Type": "multipart/form-data; boundary=b"})

    def begin_session(self):
        """A speech whose listener has heard its beginning, and reads no further for now."""
        connection = self.connect()
        connection.request("POST", "/v1/audio/speech", json.dumps({"input": LONG * 4, "response_format": "wav"}))
        reply = connection.getresponse()
        self.assertEqual(reply.status, 200, "refused while a slot was free")
        self.assertEqual(reply.read(4), b"RIFF")
        self.addCleanup(connection.close)
        return connection, reply

    def web_socket(self, path, server=None):
        """Through HAProxy, unless a server is named."""
        if server is None:
            connection = self.connect()
            connection.connect()
            opened = WebSocket(connection.sock, path)
        else:
            opened = WebSocket(server.connect(), path)
        self.addCleanup(opened.close)
        return opened

    def web_sockets(self, count, path):
        """All at once."""
        with concurrent.futures.ThreadPoolExecutor(count) as clients:
            return list(clients.map(lambda _: self.web_socket(path), range(count)))

    @staticmethod
    def is_whole(reply):
        try:
            reply.read()
            return True
        except (http.client.IncompleteRead, ConnectionError, ssl.SSLError):
            return False

    def free_slots(self, kind="speech"):
        return [server.free_slots(kind) for server in self.servers]

    def test_what_needs_no_slot_of_speech_is_served_while_all_are_taken(self):
        sessions = [self.begin_session() for _ in range(3 * SLOTS)]
        time.sleep(1)  # longer than between two looks at a server
        self.assertEqual(self.free_slots(), [0, 0, 0])
        self.assertEqual(json.loads(self.speak()[2])["error"]["code"], "no_free_slot")
        for path in ("/v1/models", "/v1/audio/voices", "/health", "/ready", "/openapi.json"):
            self.assertEqual(self.ask(path)[0], 200, path)
        self.assertEqual([self.transcribe(seconds)[0] for seconds in (0.5, 0.5, 0.5, 4, 4, 4)], [200] * 6)
        self.assertEqual(self.free_slots(), [0, 0, 0])
        # One that becomes free is found at once, on whichever server it is.
        for connection, _ in sessions:
            connection.close()
            self.wait_for(lambda: sum(self.free_slots()) == 1)
            self.begin_session()

    def test_servers_that_answer_late_are_not_taken_for_dead(self):
        """For seconds none of them says anything, neither to who looks after them nor to who asks."""
        with concurrent.futures.ThreadPoolExecutor() as asker:
            with contextlib.ExitStack() as stopped:
                for server in self.servers:
                    stopped.callback(server.server.send_signal, signal.SIGCONT)  # whatever fails: who is stopped does not end
                    server.server.send_signal(signal.SIGSTOP)
                time.sleep(2)
                asked = asker.submit(self.speak)
                time.sleep(0.5)
            self.assertEqual(asked.result()[0], 200)

    def test_no_session_is_refused_while_a_slot_is_free_and_only_a_killed_servers_are_lost(self):
        sessions = [self.begin_session() for _ in range(3 * SLOTS)]
        self.assertEqual(self.free_slots(), [0, 0, 0])
        status, headers, body = self.speak()
        self.assertEqual((status, headers["Retry-After"], json.loads(body)["error"]["code"]), (503, "1", "no_free_slot"))
        self.assertEqual(self.ask("/metrics")[0], 404)

        killed, drained, left = self.servers
        killed.server.send_signal(signal.SIGKILL)
        killed.end_server(-signal.SIGKILL, terminate=False)
        drained.server.terminate()
        # All at once: who waited for the others to be read would be cut off as one that does not read.
        with concurrent.futures.ThreadPoolExecutor(len(sessions)) as readers:
            complete = sum(readers.map(self.is_whole, [reply for _, reply in sessions]))
        self.assertEqual(complete, 2 * SLOTS)
        drained.end_server(terminate=False)

        self.wait_for(lambda: left.free_slots() == SLOTS)
        self.assertEqual([self.speak()[0] for _ in range(5)], [200] * 5)
        left.server.terminate()
        left.end_server(terminate=False)
        status, headers, body = self.speak()
        self.assertEqual((status, headers["Retry-After"], json.loads(body)["error"]["code"]), (503, "1", "no_server"))

    def check_handshakes(self, path, taken):
        """`taken`: how many of a server's places are."""
        full, other, _ = self.servers
        # As by another HAProxy: this one knows nothing of them, and takes the two for idle.
        opened = [self.web_socket(path, server) for server in (full, full, other, other)]
        opened += self.web_sockets(2, path)
        self.assertEqual([each.status for each in opened], [101] * 3 * SLOTS, "refused while a slot was free")
        self.assertEqual([taken(server) for server in self.servers], [SLOTS] * 3)
        # They were asked like the third, and whom they refused got a place there.
        route = path.replace("/tiny", "/{model}")
        counted = f'syrinx_requests_total{{route="{route}",code="503"}}'
        self.assertGreater(full.metric(counted) + other.metric(counted), 0)
        refused = self.web_socket(path)
        self.assertEqual((refused.status, refused.headers["Retry-After"]), (503, "1"))
        self.assertIn(b"are busy", refused.body)
        before = [looks(server) for server in self.servers]  # no server has a place, and each kind of look has said so
        self.wait_for(lambda: all(looks(server) >= count + 9 for server, count in zip(self.servers, before)))
        for place in (0, 2, -1):  # of each server one: where a place has just become free it is found
            opened[place].close()
            self.wait_for(lambda: sum(map(taken, self.servers)) == 3 * SLOTS - 1)
            opened[place] = self.web_socket(path)
            self.assertEqual(opened[place].status, 101, "refused while a slot was free")
        for each in (opened[0], opened[2]):
            each.close()
        self.wait_for(lambda: sum(map(taken, self.servers)) == 3 * SLOTS - 2)
        last = [each.status for each in self.web_sockets(2, path)]
        self.assertEqual(last, [101] * 2, "refused while a slot was free")

    def test_a_stream_is_refused_where_no_server_has_a_slot(self):
        for _ in range(3 * SLOTS):
            self.begin_session()  # so that there is no slot of any kind
        self.check_handshakes(DECODE, streams)

    def test_a_session_is_refused_where_no_server_has_room(self):
        self.check_handshakes(REALTIME, sessions)

    def test_only_a_killed_servers_streams_are_lost_and_a_drained_ones_end_well(self):
        lost, ended, kept = self.take_all(lambda: self.open(DECODE), streams)
        for stream in lost + ended + kept:
            stream.send(tone(0.5))
        killed, drained, left = self.servers
        killed.server.send_signal(signal.SIGKILL)
        killed.end_server(-signal.SIGKILL, terminate=False)
        drained.server.terminate()
        self.assertEqual([stream.heard()[1] for stream in lost], [None] * SLOTS)
        self.assertEqual([stream.heard() for stream in ended], [("COMPLETE", 1001)] * SLOTS)
        for stream in ended:
            stream.close()
        drained.end_server(terminate=False)
        for stream in kept:
            stream.send(b"\0")
        self.assertEqual([stream.heard() for stream in kept], [("COMPLETE", 1000)] * SLOTS)

        self.wait_for(lambda: left.free_slots("recognition") == SLOTS)
        self.assertEqual([stream.status for stream in self.web_sockets(SLOTS, DECODE)], [101] * SLOTS)
        self.assertEqual(self.web_socket(DECODE).status, 503)

    def open(self, path):
        opened = self.web_socket(path)
        self.assertEqual(opened.status, 101, "refused while a slot was free")
        return opened

    def take_all(self, begin, taken):
        """All places of a kind, by the server that they are on."""
        places = [[], [], []]
        for _ in range(3 * SLOTS):
            before = list(map(taken, self.servers))
            begun = begin()
            (place,) = (i for i, server in enumerate(self.servers) if taken(server) > before[i])
            places[place].append(begun)
        return places

    def check_while_one_has_died_and_one_drains(self, looked_at):
        """The third one's places are found, as often as they become free, and nobody who has begun loses by it but the dead one's."""
        speeches = self.take_all(self.begin_session, lambda server: SLOTS - server.free_slots())
        opened = self.take_all(lambda: self.open(REALTIME), sessions)
        killed, drained, left = self.servers
        opened[2].pop().close()
        speeches[2].pop()[0].close()
        self.wait_for(lambda: (left.free_slots(), sessions(left)) == (1, SLOTS - 1))
        killed.server.send_signal(signal.SIGKILL)
        drained.server.terminate()
        killed.end_server(-signal.SIGKILL, terminate=False)
        drained.wait_for(lambda: drained.request("GET", "/ready")[0] == 503)

        speeches[2].append(self.begin_session())
        opened[2].append(self.open(REALTIME))
        heard = self.web_sockets(SLOTS, DECODE)
        self.assertEqual([each.status for each in heard], [101] * SLOTS, "refused while a slot was free")
        self.assertEqual((left.free_slots(), streams(left), sessions(left)), (0, SLOTS, SLOTS))
        for path in (DECODE, REALTIME):
            self.assertEqual(self.web_socket(path).status, 503)
        for _ in range(4):
            heard.pop(0).close()
            self.wait_for(lambda: streams(left) == SLOTS - 1)
            heard.append(self.open(DECODE))
            if looked_at:
                before = looks(left)
                self.wait_for(lambda: looks(left) >= before + 3)  # one of each kind

        self.assertIsNone(drained.server.poll())
        self.assertEqual([each.heard() for each in opened[0]], [(None, None)] * SLOTS)
        self.assertEqual([each.heard() for each in opened[1]], [(None, 1001)] * SLOTS)
        self.assertTrue(all(each.lives() for each in opened[2]))
        replies = [reply for place in speeches for _, reply in place]
        with concurrent.futures.ThreadPoolExecutor(len(replies)) as readers:
            self.assertEqual(list(readers.map(self.is_whole, replies)), [False] * SLOTS + [True] * 2 * SLOTS)
        for each in opened[1]:
            each.close()
        drained.end_server(terminate=False)

    def test_a_place_is_found_when_one_has_just_died_and_one_drains(self):
        self.check_while_one_has_died_and_one_drains(looked_at=True)

    def test_a_place_is_found_before_anybody_has_looked(self):
        """Whom HAProxy takes for ready have died or drain, for as long as the test lasts."""
        self.end_haproxy()
        self.start_haproxy("inter 1h")
        self.check_while_one_has_died_and_one_drains(looked_at=False)


if __name__ == "__main__":
    unittest.main()
