"""A server on a free port of this machine, with small random checkpoints of Pocket TTS and Whisper; shared by its tests."""
import functools
import http.client
import json
import re
import socket
import subprocess
import threading

from program import DATA, Program

ENGLISH = DATA / "pocket_tts/english"
MODEL = ["--recognition-model", "", "--speech-model", ENGLISH, "--voices", f"ann={ENGLISH / 'voice.safetensors'}", "--voices",
         f"bob={DATA / 'pocket_tts/voice.wav'}", "--voice", "ann"]
# Spoken in a moment, but more sound than sockets and queues hold: megabytes.
LONG = "This is a sentence that takes some time to say. " * 40


def form(sound, **fields):
    """A body of multipart/form-data with the boundary `b`; a list is a field that comes several times."""
    parts = [("file\"; filename=\"sound.wav", sound)]
    for name, value in fields.items():
        parts += [(name, each.encode()) for each in (value if isinstance(value, list) else [value])]
    return b"".join(b"--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n" % (name.encode(), content)
                    for name, content in parts) + b"--b--\r\n"


class Server(Program):
    """start_server() for each test; it is ended, and must end well, behind the test."""

    def setUp(self):
        super().setUp()
        self.server, self.seen = None, set()

    def tearDown(self):
        if self.server is not None:
            self.end_server()
        super().tearDown()
        self.check_statuses()

    def start_server(self, *arguments, model=MODEL, variables=None, **options):
        # Machines that tests run on are slower than they would be; admission by load has tests of its own.
        if "--live-load" not in arguments:
            arguments = ("--live-load", "0", *arguments)
        self.server = self.start("serve", "--port", "0", *model, *arguments, stdout=subprocess.DEVNULL, variables=variables,
                                 **options)
        self.lines = []
        told = threading.Event()

        def read():
            for line in self.server.stderr:
                self.lines.append(line.decode())
                if re.search(rb"page: https?://", line):
                    told.set()
            told.set()

        self.reader = threading.Thread(target=read)
        self.reader.start()
        self.assertTrue(told.wait(300), self.lines)
        addresses = (re.search(r" at https?://(?:\[(.*)\]|([^/:]*)):(\d+)", line) for line in self.lines)
        address = next((found for found in addresses if found), None)
        self.assertIsNotNone(address, self.lines)
        self.host, self.port = address[1] or address[2], int(address[3])
        wyoming = next((line for line in self.lines if "Wyoming at " in line), None)
        self.wyoming_port = int(wyoming.rpartition(":")[2]) if wyoming else None

    @staticmethod
    @functools.cache
    def described_paths():
        """Of /openapi.json, asked of a server that no test counts on."""
        other = Server()
        other.setUp()
        other.start_server()
        paths = json.loads(other.request("GET", "/openapi.json")[2])["paths"]
        other.seen.clear()
        other.tearDown()
        return paths

    def check_statuses(self):
        """/openapi.json has each status that a request of this test was answered with."""
        for method, target, status in self.seen:
            path = target.partition("?")[0]
            described = next((operations for template, operations in Server.described_paths().items()
                              if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path)), {})
            operation = described.get(method.lower())
            if operation is not None:
                self.assertIn(str(status), operation["responses"], f"{method} {target}")

    def end_server(self, status=0, terminate=True):
        if terminate:
            self.server.terminate()
        self.assertEqual(self.server.wait(120), status, self.lines)
        self.reader.join()
        self.server.stderr.close()
        self.server.stdin.close()
        self.server = None

    def logged(self, event):
        """The log's lines of a kind."""
        return [line for line in map(json.loads, (text for text in self.lines if text.startswith("{"))) if line["event"] == event]

    def check_log_without(self, event, *texts, route):
        """Ends the server: its whole log has lines of that kind, and of that route, and nothing of these texts."""
        self.end_server()
        whole = "".join(self.lines).casefold()
        for text in texts:
            words = max(re.findall("[a-z ]+", text.casefold()), key=len).strip()[:12]  # JSON writes these as they are
            self.assertGreater(len(words), 4, text)
            self.assertNotIn(words, whole)
        self.assertTrue(self.logged(event), whole)
        self.assertIn(route, [line["route"] for line in self.logged("request")])

    def connection_to(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=120)

    def request(self, method, path, body=None, headers=()):
        """Status, headers, body."""
        connection = self.connection_to()
        try:
            connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, dict(headers))
            reply = connection.getresponse()
            self.seen.add((method, path, reply.status))
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def speak(self, text="Hello there.", headers=(), **fields):
        return self.request("POST", "/v1/audio/speech", {"input": text, **fields}, headers)

    def spoken(self, text="Hello there.", **fields):
        status, _, body = self.speak(text, response_format="pcm", **fields)
        self.assertEqual(status, 200, body)
        return body

    def check_refused(self, status, code, param, *arguments, **options):
        got, headers, body = self.request(*arguments, **options)
        self.assertEqual(got, status, body)
        error = json.loads(body)["error"]
        self.assertEqual(list(error), ["message", "type", "param", "code"])
        self.assertEqual((error["code"], error["param"]), (code, param), error)
        return headers, error["message"]

    def check_same(self, sound, expected, same=True):
        """Without printing either."""
        self.assertIs(sound == expected, same, (len(sound), len(expected)))

    def connect(self, receive_bytes=None, port=None):
        """A plain socket, to HTTP unless another port is named; `receive_bytes` is how much of an answer the system keeps for us."""
        connection = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        if receive_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            # As on a network: segments of 64 kB, the loopback's, would come seconds apart into so small a buffer.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)
        connection.settimeout(120)
        connection.connect((self.host, port or self.port))
        return connection

    def ask(self, connection, text=LONG, **fields):
        """Begins a speech on a plain socket."""
        body = json.dumps({"input": text, "response_format": "wav", **fields}).encode()
        connection.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def transcribe(self, sound, path="/v1/audio/transcriptions", headers=(), **fields):
        """Posts a recording as a form."""
        return self.request("POST", path, form(sound, **fields),
                            {"Content-Type": "multipart/form-data; boundary=b", **dict(headers)})

    def free_slots(self, kind="speech"):
        return json.loads(self.request("GET", "/ready")[2])[kind]["free_slots"]

    def last_lines(self):
        """The log's last lines, without those of asking again and again."""
        return [line for line in self.lines if not re.search(r'"route":"/(metrics|ready|health)"', line)][-8:]

    def hold_recognition(self):
        """A socket: a slot of recognition is taken until it is closed, as over Wyoming by whoever begins to speak."""
        speaker = self.connect(port=self.wyoming_port)
        free = self.free_slots("recognition")
        speaker.sendall(b'{"type": "audio-start", "data": {"rate": 16000, "width": 2, "channels": 1}}\n')
        self.wait_for(lambda: self.free_slots("recognition") == free - 1)
        return speaker

    def status_or_none(self):
        """Of /health; none while the server has no room for us."""
        try:
            return self.request("GET", "/health")[0]
        except (OSError, http.client.HTTPException):
            return None

    def metric(self, line):
        for text in self.request("GET", "/metrics")[2].decode().splitlines():
            if text.startswith(line + " "):
                return float(text.rpartition(" ")[2])
        return 0.0
