"""A hub of our own: Hugging Face's routes for files."""
import hashlib
import http.server
import threading

COMMIT = "c" * 40  # of a branch


class Hub:
    """Gives out files by name to everybody, and of o/gated to those with a token; counts what it was asked."""

    def __init__(self, files):
        hub = self
        self.files, self.asked = files, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self):
                hub.asked.append((self.command, self.path))
                revision, _, name = self.path.partition("/resolve/")[2].partition("/")  # a file in a folder by its path
                name = name if name in hub.files else self.path.rsplit("/", 1)[1]
                if self.path.startswith("/o/gated/") and self.headers.get("Authorization") != "Bearer hf_good":
                    self.send_response(401)
                    self.send_header("X-Error-Code", "GatedRepo")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if name not in hub.files:
                    self.send_error(404)
                    return
                content = hub.files[name]
                self.send_response(200)
                self.send_header("X-Repo-Commit", revision if len(revision) == len(COMMIT) else COMMIT)
                self.send_header("X-Linked-Size", str(len(content)))
                self.send_header("X-Linked-ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

            do_GET = do_HEAD

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def address(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
