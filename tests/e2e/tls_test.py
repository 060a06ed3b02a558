"""`syrinx serve` over TLS: the same bytes as in the clear, and what becomes of clients and files that are not as they should be."""
import base64
import contextlib
import http.client
import json
import signal
import socket
import ssl
import struct
import subprocess
import time
import unittest

from server import LONG, MODEL, Server

SPEECH = "/v1/audio/speech"


HEALTHY = b'{"status":"ok","version":'


class Tls(Server):
    context = None

    def make_pair(self, name, *options):
        """A certificate of this machine, signed by itself, and its key."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", key,
                               "-out", certificate, "-days", "2", "-subj", f"/CN={name}", "-addext",
                               "subjectAltName=IP:127.0.0.1,DNS:localhost", *(options or ["-nodes"])], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        return certificate, key

    def start_tls(self, *arguments, pair=None):
        self.certificate, self.key = pair or self.make_pair("server")
        self.start_server("--tls-certificate", self.certificate, "--tls-key", self.key, *arguments)
        self.context = ssl.create_default_context(cafile=self.certificate)
        self.assertTrue(any(f"page: https://127.0.0.1:{self.port}/" in line for line in self.lines))

    def connection_to(self):
        if self.context is None:
            return super().connection_to()
        return http.client.HTTPSConnection(self.host, self.port, timeout=120, context=self.context)

    def shake_hands(self, context=None, receive_bytes=None):
        """An end without close_notify is an error of this socket's."""
        return (context or self.context).wrap_socket(self.connect(receive_bytes), server_hostname="localhost", suppress_ragged_eofs=False)

    def failed(self, count):
        self.wait_for(lambda: self.metric("syrinx_tls_handshakes_failed_total") == count)


class Speech(Tls):
    def test_the_sound_is_that_of_http(self):
        self.start_server()
        expected = {kind: self.speak(LONG, response_format=kind)[2] for kind in ("wav", "opus")}
        self.end_server()
        self.start_tls()
        for kind, sound in expected.items():
            for stream in (True, False) if kind == "opus" else (True,):
                status, _, body = self.speak(LONG, response_format=kind, stream=stream)
                self.assertEqual(status, 200, body)
                self.check_same(body, sound)

    def test_one_connection_serves_many_requests(self):
        self.start_tls()
        connection = self.connection_to()
        self.addCleanup(connection.close)
        sounds = set()
        for _ in range(20):
            connection.request("POST", SPEECH, json.dumps({"input": "Hello.", "response_format": "pcm"}))
            sounds.add(connection.getresponse().read())
            connection.request("GET", "/health")
            self.assertTrue(connection.getresponse().read().startswith(HEALTHY))
        self.assertEqual(len(sounds), 1)

    def test_requests_may_come_before_the_answers(self):
        self.start_tls()
        with self.shake_hands() as client:
            body = b'{"input": "Hello.", "response_format": "pcm"}'
            client.sendall((b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (SPEECH.encode(), len(body)) + body) * 3 +
                           b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(65536), b""))  # to the end that the server has told
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK\r\n"), 4)
        self.assertIn(HEALTHY, answer[-100:])

    def test_a_certificate_of_its_own(self):
        home = self.folder / "home"
        made = set()
        for count in range(2):  # made, and used again
            self.start_server("--tls-self-signed", variables={"SYRINX_HOME": str(home)})
            certificate = home / "data/tls/certificate.pem"
            self.assertTrue(any(f"certificate: {certificate}" in line for line in self.lines), self.lines)
            self.assertEqual(any("a new certificate was made" in line for line in self.lines), count == 0, self.lines)
            made.add(certificate.read_text())
            self.context = ssl.create_default_context(cafile=certificate)
            self.assertTrue(self.request("GET", "/health")[2].startswith(HEALTHY))
            with self.shake_hands():  # by its name
                pass
            self.end_server()
        self.assertEqual(len(made), 1)
        self.assertEqual((home / "data/tls/key.pem").stat().st_mode & 0o777, 0o600)
        certificate.write_text(self.make_pair("other")[0].read_text())
        code, _, errors = self.run_it("serve", *MODEL, "--check", "--tls-self-signed", variables={"SYRINX_HOME": str(home)})
        self.assertNotEqual(code, 0)
        self.assertIn("is no certificate that the server has made", errors)

    def test_curl_is_answered(self):
        self.start_tls()
        for version in ("--tls-max 1.2", "--tlsv1.3"):
            done = subprocess.run(["curl", "--silent", "--show-error", "--fail", "--noproxy", "*", "--cacert", self.certificate, *version.split(),
                                   "--data", '{"input": "Hello there.", "response_format": "pcm"}', "--header",
                                   "Content-Type: application/json", f"https://localhost:{self.port}{SPEECH}"], capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_same(done.stdout, self.spoken())

    def test_a_body_that_is_refused_is_answered_all_the_same(self):
        self.start_tls("--max-body-kb", "64")
        connection = self.connection_to()
        self.addCleanup(connection.close)
        connection.request("POST", SPEECH, b"x" * (100 << 10))
        reply = connection.getresponse()
        self.assertEqual(reply.status, 413)
        self.assertIn("has more than 64 KB, which is what the server's 'max_body_kb' lets in", json.loads(reply.read())["error"]["message"])

    def test_a_client_that_leaves_makes_room(self):
        self.start_tls("--speech-slots", "1", "--stalled-reader-s", "600")
        reset = struct.pack("ii", 1, 0)
        for leave in (lambda client: client.close(), lambda client: client.shutdown(socket.SHUT_WR),
                      lambda client: (client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset), client.close())):
            client = self.shake_hands(receive_bytes=4096)
            self.ask(client)
            self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 200 OK\r\n"))
            self.assertEqual(self.free_slots(), 0)
            leave(client)
            self.wait_for(lambda: self.free_slots() == 1)
            client.close()

    def test_an_address_shakes_hands_at_a_pace(self):
        self.start_tls("--max-connections-per-address", "20")  # 20 at once, then one each 0.2 s
        begun = time.monotonic()
        for _ in range(30):
            self.shake_hands().close()
        self.assertGreater(time.monotonic() - begun, 1.5)
        with self.connect() as waits:  # the end waits for none
            waits.sendall(b"\x16\x03\x01")
            self.end_server()


class WebSocket(Tls):
    def frame(self, message):
        data = json.dumps(message).encode()
        return b"\x81" + (bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))) + bytes(4) + data

    def events(self, stream):
        """Text messages, whatever frames they come in, until the closing frame."""
        text = b""
        while True:
            first, size = stream.read(2)
            size = struct.unpack(">H", stream.read(2))[0] if size == 126 else struct.unpack(">Q", stream.read(8))[0] if size == 127 else size
            data = stream.read(size)
            if first == 0x88:
                return
            if first & 0x0f in (0, 1):
                text += data
            if first in (0x80, 0x81):
                yield json.loads(text)
                text = b""

    def said(self, client):
        """The sound of a realtime response, to the end of the connection."""
        client.sendall(b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        stream = client.makefile("rb")
        self.assertEqual(stream.readline(), b"HTTP/1.1 101 Switching Protocols\r\n")
        while stream.readline() != b"\r\n":
            pass
        client.sendall(self.frame({"type": "response.create", "response": {"input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello there."}]}]}}))
        sound = b""
        for event in self.events(stream):
            sound += base64.b64decode(event["delta"]) if event["type"] == "response.output_audio.delta" else b""
            if event["type"] == "response.done":
                self.assertEqual(event["response"]["status"], "completed")
                client.sendall(b"\x88\x82\0\0\0\0\x03\xe8")
        self.assertEqual(stream.read(), b"")  # an end without close_notify would be an error
        return sound

    def test_a_session_is_that_of_http(self):
        self.start_server()
        with self.connect() as client:
            expected = self.said(client)
        self.end_server()
        self.assertGreater(len(expected), 1000)
        self.start_tls()
        with self.shake_hands() as client:
            self.check_same(self.said(client), expected)


class Misuse(Tls):
    def test_who_speaks_no_tls_or_an_old_one_is_shown_out(self):
        self.start_tls()
        with self.connect() as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(client.recv(100), b"")
        self.failed(1)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(self.certificate)
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaisesRegex(ssl.SSLError, "alert protocol version"):
            self.shake_hands(old)
        self.failed(2)
        static = ssl.create_default_context(cafile=self.certificate)
        static.maximum_version = ssl.TLSVersion.TLSv1_2
        static.set_ciphers("AES128-SHA:ECDHE-ECDSA-AES128-SHA")
        with self.assertRaisesRegex(ssl.SSLError, "handshake failure"):
            self.shake_hands(static)
        self.failed(3)
        self.assertEqual([line for line in self.lines if "error" in line], [])

    def test_who_stalls_costs_the_others_nothing(self):
        self.start_tls("--request-timeout-s", "6", "--max-connections-per-address", "20")
        silent = [self.connect() for _ in range(5)]
        half = [self.connect() for _ in range(5)]
        for client in half:
            client.sendall(b"\x16\x03\x01\x02\x00\x01\x00")  # of a ClientHello
        for client in [self.shake_hands() for _ in range(5)]:
            plain = socket.socket(fileno=client.detach())
            self.addCleanup(plain.close)
            plain.sendall(b"\x17\x03\x03\x01\x00half of a record")
        self.spoken()
        for client in silent + half:
            with client:
                self.assertEqual(client.recv(100), b"")
        self.failed(10)

    def test_requests_that_do_not_come_whole_are_told_so(self):
        self.start_tls("--request-timeout-s", "6")
        with self.shake_hands() as client:
            client.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertIn(b"has not come whole within 6 s", answer)

    def test_what_waits_is_told_the_end(self):
        self.start_tls("--idle-timeout-s", "6")  # longer than a machine stands still before it asks
        with self.shake_hands() as client:
            self.assertEqual(client.recv(100), b"")  # no error, so that close_notify has come
        with self.shake_hands() as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.recv(1000)
            self.server.terminate()
            self.assertEqual(client.recv(100), b"")
        self.end_server(terminate=False)

    def test_damaged_records_end_a_connection_and_nothing_else(self):
        self.start_tls("--speech-slots", "1", "--stalled-reader-s", "600")
        for damage in (b"\x17\x03\x03\x00\x20" + bytes(32), b"\x17\x03\x03\xff\xff", b"GET / HTTP/1.1\r\n\r\n"):
            client = self.shake_hands(receive_bytes=4096)
            self.ask(client)
            self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 200 OK\r\n"))
            with socket.socket(fileno=client.detach()) as plain:
                plain.settimeout(120)
                plain.sendall(damage)
                # Read to the end: a server that cannot send its alert looks at no further record.
                with contextlib.suppress(ConnectionResetError):
                    while plain.recv(65536):
                        pass
                self.wait_for(lambda: self.free_slots() == 1)
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="/v1/audio/speech",code="499"}') == 3)
        self.assertTrue(self.spoken())


class Files(Tls):
    def check(self, status, words, certificate, key):
        code, output, errors = self.run_it("serve", *MODEL, "--check", "--tls-certificate", certificate, "--tls-key", key)
        self.assertEqual(code, status, errors)
        self.assertIn(words, errors)
        return errors

    def test_what_is_wrong_with_them_is_said(self):
        certificate, key = self.make_pair("server")
        other, other_key = self.make_pair("other")
        secret, secret_key = self.make_pair("secret", "-passout", "pass:x")
        weak, weak_key = self.folder / "weak.pem", self.folder / "weak.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:1024", "-nodes", "-keyout", weak_key, "-out", weak, "-subj", "/CN=weak"],
                       check=True, capture_output=True)
        nothing, damaged = self.folder / "nothing.pem", self.folder / "damaged.pem"
        nothing.write_bytes(b"")
        damaged.write_text(certificate.read_text() + other.read_text()[:200] + "\n-----END CERTIFICATE-----\n")
        self.assertEqual(self.check(0, "", certificate, key), "")
        for status, words, *pair in (
                (3, "'tls_certificate': ", self.folder / "none.pem", key), (3, "'tls_key': ", certificate, self.folder / "none.key"),
                (4, f"'{key}' holds no certificate in PEM", key, key), (4, f"'{nothing}' holds no certificate", nothing, key),
                (4, f"'{certificate}' holds no private key in PEM", certificate, certificate),
                (4, f"certificate 2 of '{damaged}' is damaged: ", damaged, key),
                (2, f"the key in '{other_key}' does not belong to the certificate in '{certificate}'", certificate, other_key),
                (2, f"the key in '{secret_key}' asks for a password", secret, secret_key),
                (2, f"the certificate in '{weak}' cannot be used: ee key too small", weak, weak_key),
                (2, "'tls_certificate' is set without 'tls_key'", certificate, ""), (2, "'tls_key' is set without", "", key)):
            errors = self.check(status, words, *pair)
            self.assertEqual(errors.count("\n"), 1, errors)

    def test_what_is_unwise_is_a_warning(self):
        certificate, key = self.make_pair("server")
        key.chmod(0o644)
        self.assertIn("warning: ", self.check(0, f"the key in '{key}' can be read by every user", certificate, key))
        key.chmod(0o640)
        self.assertEqual(self.check(0, "", certificate, key), "")
        late = self.folder / "late.pem"
        (self.folder / "ca.conf").write_text("[ca]\ndefault_ca=d\n[d]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\n"
                                             "policy=p\n[p]\ncommonName=supplied\n")
        (self.folder / "index").write_bytes(b"")
        for arguments in (["req", "-new", "-key", key, "-subj", "/CN=late", "-out", "late.request"],
                          ["ca", "-batch", "-config", "ca.conf", "-selfsign", "-keyfile", key, "-in", "late.request", "-notext", "-startdate",
                           "20200101000000Z", "-enddate", "20200102000000Z", "-out", late]):
            made = subprocess.run(["openssl", *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)
        self.check(0, f"warning: '{late}' is out of date", late, key)

    def test_the_chain_is_shown(self):
        """A client that knows the root alone finds its way from the server's certificate through the one between."""
        run = lambda *arguments: subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=self.folder)
        ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        run("req", "-x509", *ec, "-keyout", "root.key", "-out", "root.pem", "-subj", "/CN=root")
        for name, issuer, extension in (("between", "root", "basicConstraints=critical,CA:TRUE"),
                                        ("leaf", "between", "subjectAltName=DNS:localhost,IP:127.0.0.1")):
            (self.folder / "extension").write_text(extension)
            run("req", *ec, "-keyout", f"{name}.key", "-out", f"{name}.request", "-subj", f"/CN={name}")
            run("x509", "-req", "-in", f"{name}.request", "-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key", "-CAcreateserial", "-days", "2",
                "-extfile", "extension", "-out", f"{name}.pem")
        chain = self.folder / "chain.pem"
        chain.write_text((self.folder / "leaf.pem").read_text() + (self.folder / "between.pem").read_text())
        self.start_tls(pair=(chain, self.folder / "leaf.key"))
        self.context = ssl.create_default_context(cafile=self.folder / "root.pem")
        self.assertEqual(self.request("GET", "/health")[0], 200)

    def test_a_new_certificate_is_read_on_sighup(self):
        self.start_tls()
        old = self.connection_to()
        self.addCleanup(old.close)
        old.request("GET", "/health")
        old.getresponse().read()
        kept = lambda: sum("the certificate stays as it was" in line for line in self.lines)
        for count, path in enumerate((self.certificate, self.key)):  # half written yet
            whole = path.read_bytes()
            path.write_bytes(whole[:len(whole) // 2])
            self.server.send_signal(signal.SIGHUP)
            self.wait_for(lambda: kept() > count)
            self.assertEqual(self.request("GET", "/health")[0], 200)
            path.write_bytes(whole)
        certificate, key = self.make_pair("renewed")
        self.certificate.write_bytes(certificate.read_bytes())
        self.key.write_bytes(key.read_bytes())
        self.server.send_signal(signal.SIGHUP)
        self.wait_for(lambda: any("new connections are shown" in line for line in self.lines))
        self.assertEqual(kept(), 2)  # a line each
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.request("GET", "/health")
        self.context = ssl.create_default_context(cafile=certificate)
        self.assertEqual(self.request("GET", "/health")[0], 200)
        old.request("GET", "/health")
        self.assertEqual(old.getresponse().status, 200)


if __name__ == "__main__":
    unittest.main()
