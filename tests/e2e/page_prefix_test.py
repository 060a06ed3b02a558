"""The page of `syrinx serve` in a real Chromium, behind a proxy that serves it below a path."""
import contextlib
import socket
import threading
import unittest

from page_test import Page
from program import tiny_whisper
from server import MODEL


class PrefixProxy:
    """Strips PREFIX from each path; requests of other paths are refused and kept in `strays`."""

    PREFIX = b"/speech/engine"

    def __init__(self, server):
        self.server, self.strays, self.paths = server, [], set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start(self.accept)

    @staticmethod
    def start(work, *arguments):
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                self.start(self.serve, self.listener.accept()[0])

    def serve(self, client):
        """One request a connection, so that each head is seen."""
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(65536)
                if not part:
                    return
                head += part
            method, target, rest = head.split(b" ", 2)
            if not target.startswith(self.PREFIX + b"/"):
                self.strays.append(target.decode())
                client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            target = target[len(self.PREFIX):]
            self.paths.add(target.decode())
            if b"\r\nupgrade:" not in rest.lower():
                rest = rest.replace(b"\r\nConnection: keep-alive", b"").replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
            with socket.create_connection(self.server) as server:
                server.sendall(b" ".join((method, target, rest)))
                self.start(self.copy, client, server)
                self.copy(server, client)

    @staticmethod
    def copy(source, sink):
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class BehindAPath(Page):
    def test_all_of_the_page_works(self):
        self.start_server("--recognition-model", tiny_whisper(self.folder / "tiny"), model=MODEL[2:])
        proxy = PrefixProxy((self.host, self.port))
        self.addCleanup(proxy.close)
        self.open_page(address=f"http://127.0.0.1:{proxy.port}{proxy.PREFIX.decode()}")
        self.browser.write("#text", "Hello there.")
        self.browser.click("#say")
        self.browser.wait_for(lambda: self.heard()["peak"] > 0.001)
        self.wait_for_text("#speak-told", "real-time factor")
        self.browser.click("#dictate-toggle")
        self.wait_for_text("#dictate-fault", "silero-vad")  # not installed: an event of the session says so
        for path in ("/", "/assets/page.css", "/ready", "/v1/audio/voices?model=english", "/v1/audio/speech", "/metrics",
                     "/v1/realtime?model=tiny&intent=transcription"):
            self.assertIn(path, proxy.paths)
        self.assertEqual(proxy.strays, [])


if __name__ == "__main__":
    unittest.main()
