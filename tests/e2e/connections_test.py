"""`syrinx serve` through plain sockets: who may have how much of it for how long, what is no request, and how it ends."""
import fcntl
import http.client
import json
import os
import pathlib
import pty
import re
import resource
import select
import shlex
import signal
import socket
import subprocess
import termios
import time
import unittest

from program import BINARY
from server import LONG, MODEL, Server


class Slots(Server):
    def cancelled(self):
        return self.metric('syrinx_generation_stopped_total{reason="cancelled"}')

    def test_a_full_server_refuses_and_a_client_that_leaves_makes_room(self):
        self.start_server("--speech-slots", "1", "--stalled-reader-s", "600")
        with self.connect(receive_bytes=4096) as first:
            self.ask(first)
            self.assertTrue(first.recv(100).startswith(b"HTTP/1.1 200 OK\r\n"))
            self.wait_for(lambda: self.metric('syrinx_slots{model="english",state="busy"}') == 1)
            headers, message = self.check_refused(503, "no_free_slot", None, "POST", "/v1/audio/speech", {"input": "x"})
            self.assertEqual(headers["Retry-After"], "1")
            self.assertIn("the only slot is busy", message)
            self.check_refused(503, "no_free_slot", None, "GET", "/ready?slots=1")
            self.assertEqual(self.request("GET", "/ready")[0], 200)
            self.assertEqual(self.request("GET", "/health")[0], 200)
        self.wait_for(lambda: self.free_slots() == 1)
        self.assertEqual(self.request("GET", "/ready?slots=1")[0], 200)
        for _ in range(20):  # free before the client hears the end
            self.spoken()
        self.assertEqual(self.metric('syrinx_rejected_total{reason="no_free_slot"}'), 1)
        self.assertEqual(self.cancelled(), 1)
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="/v1/audio/speech",code="499"}') == 1)

    def test_half_closed_and_reset_connections_make_room(self):
        self.start_server("--speech-slots", "2", "--stalled-reader-s", "600")
        half, reset = self.connect(receive_bytes=4096), self.connect(receive_bytes=4096)
        for connection in (half, reset):
            self.ask(connection)
            connection.recv(100)
        half.shutdown(socket.SHUT_WR)
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        reset.close()
        self.wait_for(lambda: self.free_slots() == 2 and self.cancelled() == 2)
        half.close()

    def test_a_stalled_reader_is_cut_and_others_lose_nothing(self):
        self.start_server("--speech-slots", "2", "--stalled-reader-s", "5")
        alone = self.spoken()
        with self.connect(receive_bytes=4096) as stalled:
            self.ask(stalled)
            stalled.recv(100)
            self.check_same(self.spoken(), alone)
            self.wait_for(lambda: self.free_slots() == 2 and self.cancelled() == 1)
            self.check_same(self.spoken(), alone)

    def test_a_slow_reader_gets_all(self):
        """Who hears for longer than one who stalls may; that is longer than a machine stands still."""
        self.start_server("--stalled-reader-s", "5")
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
                    if time.monotonic() - begun < 7:
                        time.sleep(0.05)
            self.check_same(body, expected)

    def test_a_client_that_sends_more_and_leaves_makes_room(self):
        self.start_server("--speech-slots", "1", "--max-text-characters", "40000")
        # The latter is more than is read ahead.  An answer that is made whole, of minutes here, shows it in nothing else.
        for left, (more, stream) in enumerate(((b"\r\n", True), (b"\r\n", False), (b"\r\n" * 16384, True), (b"\r\n" * 16384, False))):
            with self.connect() as leaves:
                self.ask(leaves, 20 * LONG, response_format="pcm", stream=stream)
                leaves.sendall(more)
            self.wait_for(lambda: self.free_slots() == 1 and self.cancelled() == left + 1)

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
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
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
        self.assertEqual(self.metric('syrinx_requests_total{route="/v1/audio/speech",code="405"}'), 1)
        self.assertIn("/openapi.json lists what there is", self.request("GET", "/index.html")[2].decode())
        for path in ("/index.html", "//health", "/health/", "/v1/audio/../../health", "/health%2F", "*"):
            self.check_refused(404, "unknown_url", None, "GET", path)

    def test_bodies_too_long(self):
        self.start_server("--max-body-kb", "1")
        big = b'{"input": "' + b"x" * 2000 + b'"}'
        _, message = self.check_refused(413, None, None, "POST", "/v1/audio/speech", big)
        self.assertEqual(message, "the request's body has more than 1 KB, which is what the server's 'max_body_kb' lets in; send a "
                         "shorter one")
        self.assertIn("'max_body_kb' is 1, and a text of 'max_text_characters' 200000", "".join(self.lines))
        _, message = self.check_refused(413, None, None, "GET", "/health", b"x")
        self.assertIn("takes no body", message)
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
        self.start_server("--idle-timeout-s", "6", "--request-timeout-s", "6")
        silent, slow = self.connect(), self.connect()
        slow.sendall(b"GET /hea")
        late = self.connect()
        late.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        silent.settimeout(60)  # by default it is 75 s
        self.assertEqual(silent.recv(100), b"")
        for connection in (slow, late):
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            self.assertEqual((reply.status, reply.headers["Connection"]), (408, "close"))
            self.assertIn("not come whole within 6 s", json.loads(reply.read())["error"]["message"])
            self.assertEqual(connection.recv(100), b"")
        for connection in (silent, slow, late):
            connection.close()
        with self.connect() as leaves:
            leaves.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        counted = 'syrinx_requests_total{route="%s",code="%d"}'
        for asked in ("/v1/audio/speech", 499), ("/v1/audio/speech", 408), ("other", 408):
            self.wait_for(lambda: self.metric(counted % asked) == 1)

    def test_a_server_that_stood_still_tells_who_is_late(self):
        """Though it did so for seconds beyond the time that they had."""
        self.start_server("--request-timeout-s", "1")
        late = [self.connect() for _ in range(2)]
        late[0].sendall(b"GET /hea")
        late[1].sendall(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        self.assertEqual(self.request("GET", "/health")[0], 200)  # theirs have come
        self.server.send_signal(signal.SIGSTOP)
        try:
            time.sleep(4)
        finally:
            self.server.send_signal(signal.SIGCONT)  # whatever fails: who is stopped does not end
        for connection in late:
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            self.assertEqual(reply.status, 408)
            connection.close()

    def test_who_is_refused_may_stand_still(self):
        """Before it has sent all of its request, for seconds: it is not reset meanwhile."""
        self.start_server("--max-body-kb", "1", "--wyoming-port", "0")
        refused = [self.connect(), self.connect(port=self.wyoming_port)]
        refused[0].sendall(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 100000\r\n\r\n")
        refused[1].sendall(b"[]\n")
        for connection, words in zip(refused, (b"HTTP/1.1 413 ", b'{"type":"error"')):
            self.assertTrue(b"".join(iter(lambda: connection.recv(65536), b"")).startswith(words))
        time.sleep(3)
        for connection in refused:
            for _ in range(2):  # the second would tell
                connection.sendall(b"x")
            connection.close()

    def test_many_connections_and_a_limit_to_them(self):
        self.start_server("--max-connections-per-address", "20")
        open_now = [self.connect() for _ in range(20)]
        for connection in open_now:
            connection.sendall(b"G")
        with self.connect() as one_more:
            answer = b"".join(iter(lambda: one_more.recv(65536), b""))
            self.assertTrue(answer.startswith(b"HTTP/1.1 503 "), answer)
            self.assertIn(b"from your address: 'max_connections_per_address' is 20; ", answer)
        for connection in open_now:
            connection.close()
        self.wait_for(lambda: self.status_or_none() == 200)
        for _ in range(500):
            self.connect().close()
        self.wait_for(lambda: self.status_or_none() == 200)
        for _ in range(1500):  # as load balancers look whether somebody listens
            reset = self.connect()
            reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            reset.close()
        self.wait_for(lambda: self.status_or_none() == 200, 60)  # a pause of 0.1 s behind each would be 150
        before = self.metric("process_open_fds")
        for _ in range(100):
            with self.connect() as connection:
                connection.sendall(b"POST / HTTP/1.1\r\n")
        self.wait_for(lambda: self.metric("process_open_fds") <= before)

    def test_connections_of_all_addresses(self):
        self.start_server("--max-connections", "2", "--idle-timeout-s", "3600")
        open_now = [self.connection_to() for _ in range(2)]
        for connection in open_now:
            connection.request("GET", "/health")
            reply = connection.getresponse()
            self.assertEqual((reply.status, reply.read()[:1]), (200, b"{"))
        status, headers, _ = self.request("GET", "/health")
        self.assertEqual((status, headers["Retry-After"]), (503, "1"))
        open_now[0].close()
        self.wait_for(lambda: self.status_or_none() == 200)
        self.wait_for(lambda: self.status_or_none() == 200 and self.metric('syrinx_rejected_total{reason="connections"}') > 0)
        open_now[1].close()

    def test_descriptors_for_all_connections(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        wanted = 400 + 64 + 128  # and of sessions, and the server's own

        def start(limits):
            self.start_server("--max-connections", "400",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits))

        start((256, hard))
        self.assertEqual(self.metric("process_max_fds"), wanted)
        self.assertFalse([line for line in self.lines if "warning" in line])
        self.end_server()
        start((256, 300))
        self.assertEqual(self.metric("process_max_fds"), 300)
        self.assertEqual([line.partition("warning: ")[2] for line in self.lines if "warning" in line], [
            "'max_connections' is 400, for which the server needs 592 open files, and it may have 300; raise that limit "
            "(LimitNOFILE of systemd, `ulimit -n`), or set 'max_connections' to 108 at most\n"])

    def test_the_size_of_a_header(self):
        request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: %s\r\n\r\n" % (b"x" * 10000)
        for kilobytes, begin, sentence in (("16", b"HTTP/1.1 200 OK\r\n", b'"status":"ok"'),
                                           ("4", b"HTTP/1.1 431 ", b"the request's header has more than 4 KB, which is what the server's 'max_header_kb' lets in; send a shorter one")):
            self.start_server("--max-header-kb", kilobytes)
            self.assertIn(sentence, self.raw(request, begin))
            self.end_server()

    def test_request_ids(self):
        self.start_server()
        ours = self.request("GET", "/health")[1]["X-Request-Id"]
        self.assertRegex(ours, "^[0-9a-f]{32}$")
        self.assertEqual(self.request("GET", "/health", headers={"X-Request-Id": "mine-1"})[1]["X-Request-Id"], "mine-1")
        self.assertRegex(self.request("GET", "/health", headers={"X-Request-Id": "a b"})[1]["X-Request-Id"], "^[0-9a-f]{32}$")


class Life(Server):
    def test_what_is_under_way_may_end_and_nothing_else_begins(self):
        self.start_server("--drain-timeout-s", "600")
        expected = self.spoken(LONG)
        idle = self.connection_to()
        idle.request("GET", "/health")
        idle.getresponse().read()
        with self.connect(receive_bytes=4096) as connection:
            self.ask(connection, response_format="pcm")
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            self.server.terminate()
            self.assertEqual(idle.sock.recv(1), b"")
            self.check_goes_down()
            self.check_same(reply.read(), expected)
        idle.close()
        self.end_server(terminate=False)
        self.assertEqual([line["stopped"] for line in self.logged("speech")], ["eos", "eos"])

    def test_half_a_request_does_not_hold_the_end(self):
        self.start_server("--request-timeout-s", "600", "--drain-timeout-s", "600")
        with self.connect() as half:
            half.sendall(b"GET /hea")
            self.assertEqual(self.request("GET", "/health")[0], 200)
            self.end_server()  # which waits less than the request has

    def test_the_end_comes_even_if_a_client_does_not_read(self):
        self.start_server("--drain-timeout-s", "0.2", "--stalled-reader-s", "600")
        with self.connect(receive_bytes=4096) as connection:
            self.ask(connection)
            connection.recv(100)
            self.end_server()  # which waits less than a reader has

    def test_sighup_ends_nothing(self):
        """What cares for logs and certificates sends it to every service, be there something to read again or not."""
        self.start_server()
        expected = self.spoken(LONG)
        with self.connect(receive_bytes=4096) as connection:
            self.ask(connection, response_format="pcm")
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            self.server.send_signal(signal.SIGHUP)
            self.wait_for(lambda: any("there is nothing to read again without a certificate" in line for line in self.lines))
            self.check_same(reply.read(), expected)
        self.check_same(self.spoken(LONG), expected)

    def close_terminal(self, *before):
        """A server in the foreground of a terminal, its controlling one, that is closed; the process."""
        ours, theirs = pty.openpty()
        server = subprocess.Popen([*before, BINARY, "serve", "--port", "0", *map(str, MODEL)], cwd=self.out, env=self.environment(),
                                  stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                                  preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait, 120)
        self.addCleanup(server.kill)
        lines = iter(server.stderr.readline, b"")
        self.assertTrue(any(b"page: http" in line for line in lines))
        os.close(ours)
        return server, lines

    def test_a_terminal_that_is_closed_ends_its_server(self):
        server, _ = self.close_terminal()
        self.assertEqual(server.wait(120), 0)

    @staticmethod
    def end_shell(shell):
        """Of a test that has failed; one that has ended is taken note of."""
        os.kill(shell, signal.SIGKILL)
        os.waitpid(shell, 0)

    def test_a_terminal_whose_shell_is_closed_ends_its_servers(self):
        """The shell passes the signal on, to what runs in the background as well."""
        for job in ("", " &"):
            shell, terminal = pty.fork()
            if shell == 0:
                os.chdir(self.out)
                os.execvpe("bash", ["bash", "--norc", "-i"], self.environment())
            self.addCleanup(self.end_shell, shell)
            command = shlex.join([BINARY, "serve", "--port", "0", *map(str, MODEL)])
            os.write(terminal, f"{command}{job}\n".encode())
            shown = b""
            while (page := re.search(rb"page: http://127\.0\.0\.1:(\d+)/", shown)) is None:
                self.assertTrue(select.select([terminal], [], [], 120)[0], shown)
                shown += os.read(terminal, 4096)
            os.close(terminal)
            self.wait_for(lambda shell=shell: os.waitid(os.P_PID, shell, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
            self.host, self.port = "127.0.0.1", int(page[1])
            self.wait_for(lambda: self.status_or_none() is None)

    def test_nohup_keeps_a_server_and_lets_it_read_files_again(self):
        server, lines = self.close_terminal("nohup")
        status = pathlib.Path(f"/proc/{server.pid}/status")
        # Two at once would be one.
        self.wait_for(lambda: not int(re.search(r"ShdPnd:\s*(\w+)", status.read_text())[1], 16))
        server.send_signal(signal.SIGHUP)
        self.assertTrue(any(b"there is nothing to read again" in line for line in lines))
        self.assertIsNone(server.poll())

    def test_a_second_signal_ends_at_once(self):
        self.start_server("--drain-timeout-s", "600", "--stalled-reader-s", "600")
        with self.connect(receive_bytes=4096) as connection:
            self.ask(connection)
            connection.recv(100)
            self.server.terminate()
            self.wait_for(lambda: self.request("GET", "/ready")[0] == 503)
            self.end_server(status=-signal.SIGTERM)

    def check_goes_down(self):
        """Balancers, Kubernetes and Prometheus are answered to the end; who asks for work is sent elsewhere."""
        for ask in (("GET", "/ready"), ("POST", "/v1/audio/speech", {"input": "No more."})):
            status, headers, body = self.request(*ask)
            self.assertEqual((status, json.loads(body)["error"]["code"], headers["Connection"]), (503, "draining", "close"), ask)
            self.assertTrue(headers["Retry-After"])
        self.assertEqual(self.request("GET", "/health")[0], 200)
        self.assertIn(b'syrinx_rejected_total{reason="draining"} 1\n', self.request("GET", "/metrics")[2])

    def test_who_asks_on_does_not_hold_the_end(self):
        self.start_server("--drain-timeout-s", "600")
        with self.connect(receive_bytes=4096) as busy, self.connect() as asks:
            self.ask(busy)
            busy.recv(100)
            self.server.terminate()
            self.wait_for(lambda: self.request("GET", "/ready")[0] == 503)
            late = self.connect()
            late.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertTrue(late.recv(100).startswith(b"HTTP/1.1 503 "))  # and does not close
            asks.sendall(b"G")
            busy.close()
            self.end_server(terminate=False)
            late.close()

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

    def test_who_looks_all_the_time_is_not_in_the_log_unless_asked(self):
        looks = ["/health", "/ready", "/ready?slots=1", "/metrics"]
        for level, expected in (("info", [("/ready", 400), ("/v1/models", 200)]),
                                ("all", [("/health", 200), ("/ready", 200), ("/ready", 200), ("/metrics", 200), ("/ready", 400), ("/v1/models", 200)])):
            self.start_server("--log", level)
            for path in [*looks, "/ready?slots=no", "/v1/models"]:
                self.request("GET", path)
            self.end_server()
            self.assertEqual([(line["route"], line["status"]) for line in self.logged("request")], expected)

    def test_a_quiet_log(self):
        self.start_server("--log", "off")
        self.spoken()
        self.end_server()
        self.assertEqual(len(self.lines), 3)  # the model that is loaded, and the addresses of speech and of the page

    def test_it_listens_on_other_addresses(self):
        self.start_server("--host", "::1")
        self.assertEqual(self.request("GET", "/health")[0], 200)


if __name__ == "__main__":
    unittest.main()
