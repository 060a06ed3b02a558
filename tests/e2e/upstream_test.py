"""A language model behind /v1/realtime: OpenAI's client and websockets in front, a chat endpoint of this process behind."""
import array
import base64
import contextlib
import json
import random
import ssl
import subprocess
import threading
import time
import unittest

import openai

from chat_endpoint import ChatEndpoint, begin, chunk, done, refuse, say
from program import DATA, cloning_qwen
from realtime_clients_test import Realtime, SPOKEN, heard_by
from server import ENGLISH, MODEL

KEY = "sk-never-to-be-shown"
TRANSDUCER = DATA / "transducer/hybrid_streaming.nemo"


def hello(handler, _):
    begin(handler)
    say(handler, "Hel", "lo. ", "How are ", "you?")
    done(handler)


class Upstream(Realtime):
    def setUp(self):
        super().setUp()
        self.answer = hello
        self.endpoint = None
        self.key = self.folder / "key"
        self.key.write_text(KEY + "\n")

    def tearDown(self):
        super().tearDown()
        if self.endpoint is not None:
            self.endpoint.end()

    def end_server(self, **options):
        super().end_server(**options)
        for line in self.lines:
            self.assertNotIn(KEY, line)

    def serve(self, *arguments, model=MODEL, name="tiny", tls=None, **options):
        self.endpoint = ChatEndpoint(lambda handler, body: self.answer(handler, body), tls)
        self.start_server("--upstream", self.endpoint.url, "--upstream-model", name, "--upstream-key-file", self.key, *arguments,
                          model=model, variables={"no_proxy": "127.0.0.1"}, **options)

    def respond(self, client, **response):
        self.say(client, "response.create", response=response)
        return self.hear_until(client, "response.done")

    def write(self, client, text):
        self.say(client, "conversation.item.create", item={**SPOKEN, "content": [{"type": "input_text", "text": text}]})
        self.hear_until(client, "conversation.item.done")

    def asked(self, number=-1):
        return self.endpoint.requests[number][2]


class Answers(Upstream):
    def test_openais_client_hears_the_answer_while_it_comes(self):
        heard, gates = threading.Event(), []

        def answer(handler, _):
            begin(handler)
            say(handler, "Hello ", "there. ")
            gates.append(heard.wait(120))  # the first sentence's sound comes before the second one's words
            say(handler, "And that is everything.")
            done(handler)

        self.answer = answer
        self.serve()
        with openai.OpenAI(base_url=f"http://{self.host}:{self.port}/v1", api_key="any", max_retries=0) as openais, \
                openais.realtime.connect(model="gpt-realtime") as connection:
            connection.session.update(session={"type": "realtime", "instructions": "Be benevolent.", "max_output_tokens": 50})
            connection.conversation.item.create(item=SPOKEN)
            connection.response.create()
            sound, words, response = heard_by(connection, heard.set)
            self.assertEqual(response.status, "completed", response)
        self.assertEqual((words, gates), ("Hello there. And that is everything.", [True]))
        self.assertGreater(len(sound), 24000)
        path, headers, body = self.endpoint.requests[0]
        self.assertEqual((path, headers["Authorization"]), ("/v1/chat/completions", f"Bearer {KEY}"))
        self.assertEqual(body, {"model": "tiny", "stream": True, "max_tokens": 50, "messages": [
            {"role": "system", "content": "Be benevolent."}, {"role": "user", "content": "Hello there."}]})
        self.check_log_without("response", "benevolent", "hello", "everything", route="/v1/realtime")

    def test_answer_is_heard_within_its_first_sentence(self):
        heard, gates = threading.Event(), []

        def answer(handler, _):
            begin(handler)
            say(handler, "The river had risen ", "overnight and nobody ")
            gates.append(heard.wait(120))
            say(handler, "in the town knew why.")
            done(handler)

        self.answer = answer
        self.serve(model=["--speech-model", cloning_qwen(self.folder / "base"), "--recognition-model", "", "--voice", "ann"])
        with self.session() as client:
            self.write(client, "Hello there.")
            self.say(client, "response.create")
            self.hear_until(client, "response.output_audio.delta")
            heard.set()
            self.assertEqual(self.hear_until(client, "response.done")[-1]["response"]["status"], "completed")
        self.assertEqual(gates, [True])

    def test_openais_client_names_the_language_model(self):
        self.serve(name="meta/llama3.2:1b")
        with openai.OpenAI(base_url=f"http://{self.host}:{self.port}/v1", api_key="any", max_retries=0) as openais, \
                openais.realtime.connect(model="meta/llama3.2:1b") as connection:
            self.assertEqual(connection.recv().type, "session.created")
            connection.conversation.item.create(item=SPOKEN)
            connection.response.create()
            self.assertEqual(heard_by(connection)[1], "Hello. How are you?")
        self.assertEqual(self.asked()["model"], "meta/llama3.2:1b")

    def test_the_next_turn_has_the_history(self):
        self.serve("--upstream-history-items", "3", "--upstream-instructions", "")
        with self.session() as client:
            for text in ("One.", "Two."):
                self.write(client, text)
                done_event = self.respond(client)[-1]
                self.assertEqual(done_event["response"]["status"], "completed", done_event)
            item = done_event["response"]["output"][0]["id"]
            self.say(client, "conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=0)
            self.assertEqual(self.hear(client)["type"], "conversation.item.truncated")
            self.write(client, "Three.")
            self.respond(client, output_modalities=["text"])
        said = [[message["content"] for message in body["messages"]] for _, _, body in self.endpoint.requests]
        self.assertEqual(said, [["One."], ["One.", "Hello. How are you?", "Two."],
                                ["Two.\nThree."]])  # what nobody heard was not said, and an answer needs its question

    def test_what_is_said_is_answered(self):
        noise = random.Random(1)
        sound = array.array("h", (noise.randrange(-9000, 9000) for _ in range(24000 * 2))).tobytes()
        model = ["--recognition-model", TRANSDUCER, "--speech-model", ENGLISH, "--voices", f"ann={ENGLISH / 'voice.safetensors'}",
                 "--voice", "ann"]
        self.serve(model=model)
        with self.session() as client:
            self.say(client, "session.update", session={"type": "realtime", "audio": {"input": {
                "transcription": {"model": "whisper-1"}, "turn_detection": None}}})
            for at in range(0, len(sound), 9600):
                self.say(client, "input_audio_buffer.append", audio=base64.b64encode(sound[at:at + 9600]).decode())
            self.say(client, "input_audio_buffer.commit")
            events = self.respond(client)  # before the words are known
        words = [event["transcript"] for event in events if event["type"].endswith("transcription.completed")]
        self.assertGreater(len(words[0]), 20)
        self.assertEqual(self.asked()["messages"][-1], {"role": "user", "content": words[0]})
        self.assertEqual(events[-1]["response"]["output"][0]["content"][0]["transcript"], "Hello. How are you?")
        self.assertGreater(len(self.sound_of(events)), 10000)

    def test_who_interrupts_hears_no_more_and_the_connection_closes(self):
        def endless(handler, _):
            begin(handler)
            while True:
                say(handler, "And so on it goes. ", pause=0.02)

        self.answer = endless
        self.serve()
        with self.session() as client:
            self.write(client, "Tell me all.")
            self.say(client, "response.create")
            self.hear_until(client, "response.output_audio.delta")
            self.say(client, "response.cancel")
            cancelled = self.hear_until(client, "response.done")
            self.assertEqual(cancelled[-1]["response"]["status"], "cancelled")
            self.assertTrue(self.endpoint.left.wait(120))
            self.answer = hello
            self.write(client, "Stop.")
            self.assertEqual(self.respond(client)[-1]["response"]["status"], "completed")
            self.wait_for(lambda: self.free_slots() == 4)
            self.endpoint.left.clear()
            self.answer = endless
            self.say(client, "response.create")
            self.hear_until(client, "response.output_audio.delta")
        self.assertTrue(self.endpoint.left.wait(120))  # so it does when the client leaves
        self.wait_for(lambda: self.free_slots() == 4)


class Faults(Upstream):
    def check_fails_with(self, client, words):
        events = self.respond(client)
        response = events[-1]["response"]
        self.assertEqual((response["status"], response["status_details"]["type"]), ("failed", "failed"), response)
        message = response["status_details"]["error"]["message"]
        self.assertIn(words, message)
        self.assertNotIn(KEY, json.dumps(events))
        self.assertNotIn("127.0.0.1", message)
        self.assertFalse([event for event in events if event["type"] == "error"])

    def test_each_fault_is_one_sentence_and_the_session_lives_on(self):
        def cut(handler, _):
            begin(handler)
            say(handler, "Half of ")

        def garbage(handler, _):
            begin(handler)
            chunk(handler, b"data: <html>" + KEY.encode() + b"</html>\n\n")

        self.serve()
        with self.session() as client:
            self.write(client, "Hello.")
            for status in (401, 429, 500):
                self.answer = lambda handler, _, status=status: refuse(handler, status, f"key {KEY} is wrong".encode())
                self.check_fails_with(client, f"status {status}")
            for answer, words in ((cut, "broke off"), (garbage, "not a stream of chat completions")):
                self.answer = answer
                self.check_fails_with(client, words)
            self.answer = hello
            self.assertEqual(self.respond(client)[-1]["response"]["status"], "completed")
            self.endpoint.end()
            self.check_fails_with(client, "cannot be reached")
        self.endpoint = None
        self.wait_for(lambda: "status 401" in "".join(self.lines))
        self.assertNotIn(KEY, self.request("GET", "/metrics")[2].decode())

    def test_who_says_nothing_is_not_waited_for(self):
        def silent(handler, _):
            begin(handler)
            while True:  # until the server has closed the connection
                chunk(handler, b": wait\n\n")
                time.sleep(0.02)

        self.answer = silent
        self.serve("--upstream-timeout-s", "6")
        with self.session() as client:
            self.write(client, "Hello.")
            self.check_fails_with(client, "nothing for 6 s")
            self.assertTrue(self.endpoint.left.wait(120))

    def test_what_is_too_long_is_incomplete(self):
        self.serve("--max-text-characters", "8")
        with self.session() as client:
            self.write(client, "Hello.")
            response = self.respond(client)[-1]["response"]
            self.assertEqual((response["status"], response["status_details"]["reason"]), ("incomplete", "max_output_tokens"))
            self.assertEqual(response["output"][0]["content"][0]["transcript"], "Hello. H")

    def test_an_answer_without_words_is_incomplete(self):
        def thinking(handler, _):
            begin(handler)
            done(handler, "length")

        self.answer = thinking
        self.serve("--upstream-max-tokens-field", "max_completion_tokens")
        with self.session() as client:
            self.write(client, "Hello.")
            response = self.respond(client, max_output_tokens=9)[-1]["response"]
            self.assertEqual((response["status"], response["status_details"]["reason"]), ("incomplete", "max_output_tokens"))
            self.wait_for(lambda: self.free_slots() == 4)
        self.assertEqual(self.asked()["max_completion_tokens"], 9)

    def test_a_certificate_is_verified(self):
        certificate, key = self.folder / "cert.pem", self.folder / "cert.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", key, "-out",
                        certificate, "-days", "2", "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1", "-nodes"],
                       check=True, capture_output=True)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        for arguments in (["--upstream-ca-file", certificate], []):
            with contextlib.ExitStack() as stack:
                self.serve(*arguments, tls=tls)
                stack.callback(self.endpoint.end)
                stack.callback(self.end_server)
                client = stack.enter_context(self.session())
                self.write(client, "Hello.")
                if arguments:
                    self.assertEqual(self.respond(client)[-1]["response"]["status"], "completed")
                else:
                    self.check_fails_with(client, "certificate is not trusted")
        self.endpoint = None

    def test_settings_are_checked_before_the_start(self):
        for arguments, words in ((["--upstream", "localhost:11434"], "'upstream'"),
                                 (["--upstream", f"http://me:{KEY}@x/v1"], "'upstream'"),
                                 (["--upstream-key-file", self.key], "without 'upstream'"),
                                 (["--upstream", "http://x/v1", "--upstream-key-file", self.folder / "none"], "upstream_key_file")):
            code, _, errors = self.run_it("serve", "--check", *MODEL, *arguments)
            self.assertNotEqual(code, 0)
            self.assertIn(words, errors)
            self.assertNotIn(KEY, errors)
        self.lines = []


class Local(Realtime):
    """The small random language model of this server, whose answers in f32 are known, in place of an endpoint."""

    def serve(self, *arguments):
        folder = DATA / "llama/chat_smollm"
        self.known = json.loads((folder / "expected.json").read_text())
        self.start_server("--chat-model", folder / "chat_smollm.gguf", "--chat-precision", "f32", "--chat-slots", "1",
                          "--upstream", "local:chat_smollm", "--upstream-instructions", "", *arguments)

    def respond(self, client, **response):
        self.say(client, "response.create", response=response)
        return self.hear_until(client, "response.done")

    def write(self, client, text):
        self.say(client, "conversation.item.create", item={**SPOKEN, "content": [{"type": "input_text", "text": text}]})
        self.hear_until(client, "conversation.item.done")

    def test_answers_are_the_models(self):
        self.serve()
        known = self.known[0]
        with self.session("?model=chat_smollm") as client:
            self.write(client, known["messages"][0]["content"])
            seen = []
            for _ in range(8):  # drawn by the model's usual sampling, of another seed each time
                events = self.respond(client, output_modalities=["text"], max_output_tokens=5, conversation="none")
                deltas = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
                response = events[-1]["response"]
                if response["status"] == "completed":  # one in thousands draws the end
                    continue
                self.assertEqual(response["output"][0]["content"][0]["text"], deltas)
                self.assertEqual(response["status_details"], {"type": "incomplete", "reason": "max_output_tokens"}, response)
                seen.append(deltas)
        self.assertGreater(len(set(seen)), 1)
        answered = 'syrinx_tokens_total{model="chat_smollm",kind="answer"}'
        self.wait_for(lambda: 5 * len(seen) <= self.metric(answered) <= 40)
        self.assertEqual(self.metric('syrinx_tokens_total{model="chat_smollm",kind="prompt"}'), 8 * len(known["ids"]))
        self.end_server()
        ends = [(line["id"] != "", line["stopped"]) for line in self.logged("answer")]
        self.assertEqual(ends.count((True, "length")), len(seen))
        self.assertLessEqual(set(ends), {(True, "length"), (True, "stop")})

    def test_answers_are_spoken(self):
        self.serve()
        with self.session() as client:
            sound = b""
            for _ in range(12):  # some of a random model's answers have no word
                self.write(client, "Tell me a story of a boat.")
                sound += self.sound_of(self.respond(client, max_output_tokens=20))
                if sound:
                    break
        self.assertGreater(len(sound), 10000)

    def test_cancelled_answers_free_the_slot(self):
        self.serve()
        with self.session() as client:
            for _ in range(3):
                self.write(client, "Tell me a story of a boat.")  # behind an answer of any length
                self.say(client, "response.create", response={"output_modalities": ["text"]})
                event = self.hear(client)
                while event["type"] not in ("response.output_text.delta", "response.done"):  # some of its answers have no text
                    event = self.hear(client)
                if event["type"] != "response.done":
                    self.say(client, "response.cancel")
                    event = self.hear_until(client, "response.done")[-1]
                self.assertIn(event["response"]["status"], ("cancelled", "completed", "incomplete"), event)
                self.wait_for(lambda: self.free_slots("chat") == 1)

    def test_the_next_answer_waits_for_the_slot_of_the_cancelled_one(self):
        self.serve()
        question = {**SPOKEN, "content": [{"type": "input_text", "text": "Tell me a story of a boat."}]}
        alone = {"output_modalities": ["text"], "conversation": "none", "input": [question]}  # no answer makes the next question longer
        with self.session() as client:
            for _ in range(5):
                self.say(client, "response.create", response=alone)
                event = self.hear(client)
                while event["type"] not in ("response.output_text.delta", "response.done"):
                    event = self.hear(client)
                if event["type"] != "response.done":
                    self.say(client, "response.cancel")
                    self.say(client, "response.create", response={**alone, "max_output_tokens": 5})
                    self.hear_until(client, "response.done")
                    event = self.hear_until(client, "response.done")[-1]
                self.assertIn(event["response"]["status"], ("completed", "incomplete"), event)


if __name__ == "__main__":
    unittest.main()
