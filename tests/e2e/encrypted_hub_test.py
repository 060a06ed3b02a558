"""A hub that encrypts: where the user's token goes, and where it never does."""
import hashlib
import http.server
import pathlib
import ssl
import threading
import unittest

from program import DATA, Program

COMMIT = "c" * 40
NAME = f"hf://o/gated/model.bin@{COMMIT}"
CONTENT = bytes(range(256)) * 400
CERTIFICATE = DATA / "tls/localhost.pem"


class Server:
    """Answers by `answer(handler)`; keeps the tokens that it was sent."""

    def __init__(self, answer, encrypted):
        server = self
        self.tokens = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.tokens.append(self.headers.get("Authorization"))
                answer(self)

            do_HEAD = do_GET

            def give(self, status, content=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if encrypted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = f"http{'s' if encrypted else ''}://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class EncryptedHub(Program):
    def serve(self, answer, encrypted):
        server = Server(answer, encrypted)
        self.addCleanup(server.close)
        return server

    def hub(self, location, tells_size=True):
        """Gives to those with a token the address where the content is."""
        told = {"X_Linked_Size": str(len(CONTENT)),
                "X_Linked_ETag": f'"{hashlib.sha256(CONTENT).hexdigest()}"'} if tells_size else {}

        def answer(handler):
            if handler.headers.get("Authorization") != "Bearer hf_good":
                handler.give(401, X_Error_Code="GatedRepo")
            else:
                handler.give(302, X_Repo_Commit=COMMIT, Location=location + "/signed", **told)

        return self.serve(answer, encrypted=True)

    def pull(self, hub):
        variables = {"HF_ENDPOINT": hub.address, "HF_HOME": str(self.folder / "hf"), "HF_TOKEN": "hf_good",
                     "SSL_CERT_FILE": str(CERTIFICATE), "CURL_CA_BUNDLE": "", "no_proxy": "localhost"}
        return self.run_it("pull", NAME, variables=variables)

    def test_the_token_stays_with_the_hub(self):
        storage = self.serve(lambda handler: handler.give(200, CONTENT), encrypted=True)
        hub = self.hub(storage.address)
        code, output, errors = self.pull(hub)
        self.assertEqual(code, 0, errors)
        self.assertEqual(pathlib.Path(output.decode().splitlines()[-1]).read_bytes(), CONTENT)
        self.assertIn("Bearer hf_good", hub.tokens)
        self.assertEqual(storage.tokens, [None])

    def test_nothing_goes_on_in_the_open(self):
        for tells_size in (True, False):
            storage = self.serve(lambda handler: handler.give(200, CONTENT), encrypted=False)
            hub = self.hub(storage.address, tells_size)
            code, _, errors = self.pull(hub)
            self.assertEqual(code, 8, errors)
            self.assertIn("Bearer hf_good", hub.tokens)
            self.assertEqual(storage.tokens, [], "not even asked")

    def test_a_server_that_nobody_vouches_for(self):
        hub = self.hub("https://localhost:1")
        variables = {"HF_ENDPOINT": hub.address, "HF_HOME": str(self.folder / "hf"), "HF_TOKEN": "hf_good",
                     "SSL_CERT_FILE": "", "CURL_CA_BUNDLE": "", "no_proxy": "localhost"}
        code, _, errors = self.run_it("pull", NAME, variables=variables)
        self.assertEqual(code, 8, errors)
        self.assertEqual(hub.tokens, [])


if __name__ == "__main__":
    unittest.main()
