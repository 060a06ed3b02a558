"""POST /v1/chat/completions of `syrinx serve` with a small random language model, whose answers in f32 are known."""
import json
import re
import shutil
import threading
import unittest

from program import DATA
from server import Server

TINY = DATA / "llama/chat_smollm/chat_smollm.gguf"
KNOWN = json.loads((DATA / "llama/chat_smollm/expected.json").read_text())
CHAT = ["--speech-model", "", "--recognition-model", "", "--chat-model", TINY, "--chat-precision", "f32", "--chat-threads", "1"]
GREEDY = {"temperature": 0, "repetition_penalty": 1}
HI = [{"role": "user", "content": "Hello, who are you?"}]


class Chat(Server):
    def serve(self, *arguments):
        self.start_server(*arguments, model=CHAT)

    def ask(self, messages=None, **fields):
        return self.request("POST", "/v1/chat/completions", {"messages": messages or HI, **fields})

    def answer(self, *arguments, **fields):
        status, _, body = self.ask(*arguments, **fields)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def events(self, *arguments, **fields):
        status, headers, body = self.ask(*arguments, stream=True, **fields)
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        *data, last = re.findall(r"data: (.*)\n\n", body.decode())
        self.assertEqual(last, "[DONE]")
        return [json.loads(each) for each in data]

    def hold(self):
        """A socket whose owner reads only the beginning of a streamed answer, of more bytes than sockets and queues hold."""
        body = json.dumps({"messages": HI, "stream": True, **GREEDY}).encode()
        connection = self.connect(receive_bytes=4096)
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        heard = b""
        while b"chat.completion.chunk" not in heard:
            heard += connection.recv(4096)
        return connection

    def test_known_answers_whole_and_streamed(self):
        self.serve()
        for known in KNOWN:
            tokens = len(known["answer"])
            whole = self.answer(known["messages"], **GREEDY, max_tokens=tokens)
            choice, usage = whole["choices"][0], whole["usage"]
            self.assertEqual((choice["message"]["content"], choice["finish_reason"]), (known["text"], "length"))
            self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"]), (len(known["ids"]), tokens))
            *chunks, end, used = self.events(known["messages"], **GREEDY, max_tokens=tokens, stream_options={"include_usage": True})
            self.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
            self.assertEqual("".join(each["choices"][0]["delta"]["content"] for each in chunks), known["text"])
            self.assertEqual(end["choices"][0]["finish_reason"], "length")
            self.assertEqual(used["usage"]["prompt_tokens"], len(known["ids"]))
            self.assertGreater(used["usage"]["prompt_tokens_details"]["cached_tokens"], 0)  # it was asked just before

    def test_conversations_at_once_are_those_alone(self):
        self.serve()
        got = [None] * len(KNOWN)

        def ask(at):
            got[at] = self.answer(KNOWN[at]["messages"], **GREEDY, max_tokens=40)["choices"][0]["message"]["content"]

        threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(KNOWN))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, [known["text"] for known in KNOWN])

    def test_a_seed_decides_the_answer(self):
        self.serve()
        texts = [self.answer(max_tokens=20, temperature=1.5, top_p=1, top_k=0, **fields)["choices"][0]["message"]["content"]
                 for fields in ({"seed": 5}, {"seed": 5}, {"seed": 6}, {}, {})]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(len(set(texts)), 4)

    def test_a_client_that_leaves_frees_the_slot(self):
        model = self.folder / ("m" * 200 + ".gguf")  # its name is in each event
        shutil.copy(TINY, model)
        self.start_server("--chat-slots", "1", "--chat-model", model, model=CHAT[:4] + CHAT[6:])
        connection = self.hold()
        self.assertEqual(self.free_slots("chat"), 0)
        headers, message = self.check_refused(503, "no_free_slot", None, "POST", "/v1/chat/completions", {"messages": HI})
        self.assertEqual(headers["Retry-After"], "1")
        self.assertIn("the only slot is busy", message)
        connection.close()
        self.wait_for(lambda: self.free_slots("chat") == 1)
        self.answer(max_tokens=1)
        self.wait_for(lambda: self.metric('syrinx_answers_total{model="%s",reason="cancelled"}' % model.stem) == 1)

    def test_long_conversations_are_refused_in_a_sentence(self):
        self.serve("--chat-context", "128")
        _, message = self.check_refused(400, "context_length_exceeded", "messages", "POST", "/v1/chat/completions",
                                        {"messages": [{"role": "user", "content": "Hello. " * 500}], "stream": True})
        self.assertRegex(message, r"has \d+ tokens, .* limit is 128; leave older messages out")
        _, message = self.check_refused(400, None, "messages", "POST", "/v1/chat/completions", {"messages": HI * 10000})
        self.assertEqual(message, "'messages' has 10000 messages; give at most 1024, and leave older ones out")
        status, _, body = self.ask([{"role": "user", "content": "x" * (10 << 20)}])
        self.assertEqual(status, 413)
        self.assertIn("max_body_kb", json.loads(body)["error"]["message"])

    def test_names_states_and_log(self):
        self.serve()
        listed = json.loads(self.request("GET", "/v1/models")[2])["data"]
        self.assertEqual([(model["id"], model["task"]) for model in listed], [("chat_smollm", "text-generation")])
        self.assertEqual(self.answer(model="gpt-4o-mini", max_tokens=1)["model"], "chat_smollm")
        self.check_refused(404, "model_not_found", "model", "POST", "/v1/chat/completions", {"messages": HI, "model": "llama3"})
        self.check_refused(404, "model_not_found", "model", "POST", "/v1/audio/speech", {"input": "x"})
        self.assertEqual(self.request("GET", "/ready?slots=chat")[0], 200)
        _, headers, _ = self.ask(max_tokens=1, presence_penalty=1)
        self.assertEqual(headers["X-Syrinx-Ignored"], "presence_penalty")
        self.assertEqual(self.metric('syrinx_answers_total{model="chat_smollm",reason="length"}'), 2)
        self.assertGreater(self.metric('syrinx_tokens_total{model="chat_smollm",kind="prompt"}'), 50)
        self.check_log_without("chat", HI[0]["content"], route="/v1/chat/completions")

    def test_settings_are_checked(self):
        none = self.folder / "none.gguf"
        self.check_fails(3, f"there is no file or folder '{none}'", "serve", "--check", *CHAT[:4], "--chat-model", none)
        self.check_fails(2, "all empty, so there is nothing to serve", "serve", "--check", *CHAT[:4])
        status, _, errors = self.run_it("serve", "--port", "0", *CHAT, "--chat-context", "16")
        self.assertEqual(status, 6)
        self.assertIn("'chat_context' gives 16 tokens, which have no room for a greeting; raise it", errors)
        self.check_fails(2, "'upstream' is set without 'speech_model'", "serve", "--check", *CHAT, "--upstream", "local:")


if __name__ == "__main__":
    unittest.main()
