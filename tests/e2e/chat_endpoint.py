"""A chat endpoint of OpenAI's kind, as Python's own HTTP server has it, which answers as a test tells it to."""
import http.server
import json
import threading
import time


class ChatEndpoint:
    """`answer` gets the request's JSON and the handler, and says what it likes: see say(), done(), refuse()."""

    def __init__(self, answer, tls=None):
        self.requests, self.left = [], threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler):
                body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
                self.requests.append((handler.path, dict(handler.headers), body))
                try:
                    answer(handler, body)
                except OSError:
                    self.left.set()  # the server has closed the connection
                handler.close_connection = True

            def log_message(handler, *arguments):
                del arguments

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.server.server_port}/v1"

    def end(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def begin(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()


def chunk(handler, data):
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    handler.wfile.flush()


def say(handler, *pieces, pause=0.0):
    for piece in pieces:
        event = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
        chunk(handler, b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n")
        time.sleep(pause)


def done(handler, reason="stop"):
    event = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    chunk(handler, b"data: " + json.dumps(event).encode() + b"\n\n")
    chunk(handler, b"data: [DONE]\n\n")
    handler.wfile.write(b"0\r\n\r\n")


def refuse(handler, status, words):
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(words)))
    handler.end_headers()
    handler.wfile.write(words)
