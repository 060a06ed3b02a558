"""Answers and conversations of a language model: a small random one, whose answers are those of transformers' code."""
import json
import os
import random
import signal
import struct
import subprocess
import unittest

from program import BINARY, DATA, Program
from pseudo_terminal import PseudoTerminal

MODEL = DATA / "llama/chat_smollm/chat_smollm.gguf"
CASES = json.loads((DATA / "llama/chat_smollm/expected.json").read_text())
HELLO = CASES[0]["messages"][0]["content"]
FIGURES = {"end", "model", "precision", "threads", "context", "prompt_tokens", "cached_tokens", "answer_tokens", "load_ms",
           "first_token_ms", "total_ms", "prompt_tokens_per_second", "answer_tokens_per_second", "peak_rss_bytes"}


class Chat(Program):
    LIKELIEST = ("--temperature", "0", "--repetition-penalty", "1")
    GREEDY = (*LIKELIEST, "--max-tokens", "40")

    def chat(self, *arguments):
        return ["chat", "--model", MODEL, "--precision", "f32", "--threads", "1", *arguments]

    def answer(self, *arguments, text=b""):
        code, output, errors = self.run_it(*self.chat(*arguments), text=text)
        self.assertEqual((code, errors), (0, ""))
        return output.decode()

    def refused(self, status, words, *arguments, text=b""):
        self.check_fails(status, words, *self.chat(*arguments), text=text)

    def endless(self):
        """The same model with room for an answer of 8000 tokens, which are drawn so that it neither ends nor repeats itself."""
        key = b"llama.context_length" + struct.pack("<I", 4)
        content = MODEL.read_bytes()
        self.assertEqual(content.count(key + struct.pack("<I", 512)), 1)
        path = self.folder / "endless.gguf"
        path.write_bytes(content.replace(key + struct.pack("<I", 512), key + struct.pack("<I", 8192)))
        return ["chat", "--model", path, "--precision", "f32", "--threads", "1", "--context", "8192",
                "--temperature", "2", "--top-k", "5", "--top-p", "1", "--min-p", "0", "--repetition-penalty", "1"]

    def file(self, messages):
        path = self.folder / "messages.json"
        path.write_text(messages if isinstance(messages, str) else json.dumps(messages))
        return path


class OneAnswer(Chat):
    def test_answers_of_transformers(self):
        for case in CASES:
            messages = self.file(case["messages"])
            self.assertEqual(self.answer("--messages", messages, *self.GREEDY), case["text"] + "\n")
            self.assertEqual(self.answer("--messages", "-", *self.GREEDY, text=messages.read_bytes()), case["text"] + "\n")

    def test_messages_are_those_of_the_server(self):
        parts = [{"type": "input_text", "text": HELLO}]
        messages = self.file([{"role": "user", "content": parts, "name": "ann", "id": "1"}])
        self.assertEqual(self.answer("--messages", messages, *self.GREEDY), CASES[0]["text"] + "\n")
        empty = self.file([{"role": "assistant", "content": None}, {"role": "user", "content": HELLO}])
        blank = self.file([{"role": "assistant", "content": ""}, {"role": "user", "content": HELLO}])
        self.assertEqual(*(self.answer("--messages", each, *self.GREEDY) for each in (empty, blank)))

    def test_question_from_arguments_and_pipe(self):
        expected = CASES[0]["text"] + "\n"
        words = HELLO.split()
        self.assertEqual(self.answer(HELLO, *self.GREEDY), expected)
        self.assertEqual(self.answer(*words, *self.GREEDY), expected)
        for arguments in ([], ["-"]):
            self.assertEqual(self.answer(*arguments, *self.GREEDY, text=HELLO.encode() + b"\n"), expected)
        both = self.answer(words[0], *self.GREEDY, text=b"who are you?\n")
        self.assertEqual(both, self.answer(words[0] + "\n\nwho are you?", *self.GREEDY))

    def test_closed_input_is_no_text(self):
        closed = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", BINARY, *map(str, self.chat(HELLO, *self.GREEDY))],
                                capture_output=True, check=False, env=self.environment())
        self.assertEqual((closed.returncode, closed.stderr), (0, b""))
        self.assertEqual(closed.stdout.decode(), CASES[0]["text"] + "\n")

    def test_system_message(self):
        system, question = (message["content"] for message in CASES[1]["messages"])
        self.assertEqual(self.answer("--system", system, question, *self.GREEDY), CASES[1]["text"] + "\n")
        earlier, question = CASES[2]["messages"][:-1], CASES[2]["messages"][-1]["content"]
        self.assertEqual(self.answer("--messages", self.file(earlier), question, *self.GREEDY), CASES[2]["text"] + "\n")
        self.assertEqual(self.answer("--system", system, "--messages", self.file(earlier[1:]), question, *self.GREEDY),
                         CASES[2]["text"] + "\n")

    def test_seed_decides_the_draws(self):
        warm = ("--temperature", "1", "--max-tokens", "30", HELLO)
        self.assertEqual(self.answer(*warm), self.answer("--seed", "0", *warm))
        self.assertNotEqual(self.answer(*warm), self.answer("--seed", "1", *warm))

    def test_stop_texts_end_the_answer(self):
        text = CASES[0]["text"]
        for stops, end in ((["ones"], text.index("ones")), (["never", "SF"], text.index("SF"))):
            flags = [flag for stop in stops for flag in ("--stop", stop)]
            self.assertEqual(self.answer(HELLO, *flags, *self.GREEDY), text[:end] + "\n")

    def test_json_has_pieces_and_figures(self):
        lines = [json.loads(line) for line in self.answer(HELLO, "--json", *self.GREEDY).splitlines()]
        self.assertEqual("".join(line["text"] for line in lines[:-1]), CASES[0]["text"])
        self.assertGreater(len(lines), 10)
        self.assertTrue(all(list(line) == ["text"] for line in lines[:-1]))
        last = lines[-1]
        self.assertEqual(set(last), FIGURES)
        self.assertEqual((last["end"], last["precision"], last["threads"]), ("max_tokens", "f32", 1))
        self.assertEqual((last["prompt_tokens"], last["answer_tokens"]), (len(CASES[0]["ids"]), 40))
        self.assertGreater(last["answer_tokens_per_second"], 0)
        for arguments, end in ((["--stop", "ones"], "stop_text"), (["--context", "100"], "context")):
            output = self.answer(HELLO, "--json", *self.LIKELIEST, *arguments)
            self.assertEqual(json.loads(output.splitlines()[-1])["end"], end)

    def test_repetition_ends_the_answer(self):
        code, output, errors = self.run_it(*self.chat(HELLO, *self.LIKELIEST))
        self.assertEqual((code, errors), (0, "syrinx: the answer ends here, since it only repeats itself\n"))
        self.assertTrue(output.decode().startswith(CASES[0]["text"].rstrip("\ufffd")))

    def test_full_context_is_told(self):
        code, output, errors = self.run_it(*self.chat(HELLO, *self.LIKELIEST, "--context", "100"))
        self.assertEqual((code, errors), (0, "syrinx: the answer ends here, since the context of 100 tokens is full\n"))
        self.assertTrue(CASES[0]["text"].startswith(output.decode().rstrip("\n\ufffd")))
        self.refused(6, "tokens", HELLO, "--context", "50")

    def test_words_come_as_they_are_made(self):
        """No pipe holds all lines of the answer: it goes on only as it is read."""
        process = self.start(*self.endless(), "--json", HELLO, stdin=subprocess.DEVNULL)
        self.assertEqual(list(json.loads(process.stdout.readline())), ["text"])
        self.assertIsNone(process.poll(), "it goes on")
        process.stdout.close()
        self.assertEqual(process.wait(120), 7)
        self.assertEqual(process.stderr.read(), b"syrinx: cannot write to standard output: Broken pipe\n")
        process.stderr.close()

    def test_control_c_stops_the_answer(self):
        process = self.start(*self.endless(), "--json", HELLO, stdin=subprocess.DEVNULL)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        self.assertEqual(process.wait(120), 130)
        self.assertRegex(process.stderr.read(), rb"^syrinx: stopped[a-z ]*\n$")
        for stream in (process.stdout, process.stderr):
            stream.close()

    def test_mistakes(self):
        self.check_fails(3, "syrinx pull smollm2", "chat", "hello")
        self.check_fails(3, "there is no file or folder 'none.gguf'", "chat", "--model", "none.gguf", "hello")
        self.check_fails(5, "no language model", "chat", "--model", DATA / "kokoro/tiny.onnx", "hello")
        self.refused(2, "no text was given")
        self.refused(2, "no text was given", " ")
        self.refused(2, "UTF-8", text=b"\xff")
        self.refused(6, "standard input holds more than 2097152 bytes", text=b"a" * (2 << 20) + b"b")
        self.refused(2, "5 texts to stop at", HELLO, *(["--stop", "x"] * 5))
        self.refused(2, "a text to stop at has 0 bytes", HELLO, "--stop", "")
        for words, arguments in (("--temperature is 3", ["--temperature", "3"]), ("--top-p is 0", ["--top-p", "0"]),
                                 ("--top-k is -1", ["--top-k", "-1"]), ("--min-p is 2", ["--min-p", "2"]),
                                 ("--repetition-penalty is 9", ["--repetition-penalty", "9"]),
                                 ("--top-k", ["--top-k", "2.5"]), ("--temperature is nan", ["--temperature", "nan"]),
                                 ("--seed", ["--seed", "-1"]), ("--precision", ["--precision", "int2"]),
                                 ("--max-tokens", ["--max-tokens", "few"])):
            self.refused(2, words, HELLO, *arguments)

    def test_faults_of_messages(self):
        def named(messages):
            return "--messages", self.file(messages)

        question = {"role": "user", "content": "a"}
        self.refused(3, "none.json", "--messages", "none.json")
        self.refused(4, "holds no list of messages", *named({"messages": []}))
        self.refused(4, "message 2 of", *named([question, {"content": "a"}]))
        self.refused(5, "tools are not supported", *named([{"role": "tool", "content": "a"}]))
        self.refused(5, "images are not supported", *named([{"role": "user", "content": [{"type": "input_image"}]}]))
        self.refused(2, "a field 'mood'", *named([{"role": "user", "content": "a", "mood": "good"}]))
        self.refused(2, "the roles are", *named([{"role": "judge", "content": "a"}]))
        self.refused(4, "messages.json", *named("[{"))
        self.refused(6, "1025 messages", *named([question] * 1025))
        self.refused(6, "messages.json", *named([{"role": "user", "content": "a" * (10 << 20)}]))
        self.refused(6, "have 4194304 bytes", *named([{"role": "user", "content": "a" * (2 << 20)}] * 2))
        self.refused(2, "is a question already", *named([question]), "another")
        self.refused(2, "both --system", *named([{"role": "system", "content": "a"}, question]), "--system", "b")
        self.refused(2, "both come from standard input", "--messages", "-", "-", text=b"[]")
        self.refused(2, "no text was given", "--messages", "-", text=b"[]")

    def test_control_c_stops_the_reading(self):
        process = self.start(*self.chat("-"))
        process.stdin.write(b"a" * 100000)  # more than a pipe holds: some has been read
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(120), 130)
        self.assertEqual(process.stderr.read(), b"syrinx: stopped while reading\n")
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


class Conversation(Chat, PseudoTerminal):
    """On a pseudo-terminal."""

    def converse(self, *arguments):
        return self.at_prompt(self.chat(*arguments))

    def at_prompt(self, arguments):
        process, terminal = self.on_terminal(arguments, streams=("stdin", "stdout"))
        self.addCleanup(process.stderr.close)
        return process, terminal

    def read(self, terminal, until=None):
        """The text that comes until it ends in `until`, or to the end."""
        got = self.read_until(terminal, lambda got: until is not None and got.endswith(until))
        return got.decode(errors="replace").replace("\r\n", "\n")

    def ask(self, terminal, line):
        os.write(terminal, line.encode() + b"\n")
        return self.read(terminal, until=b"\n> ").removeprefix(line + "\n").removesuffix("\n> ")

    def shown(self, text):
        """As a terminal gets it: blanks for control characters."""
        return "".join(" " if ord(c) < 32 and c != "\n" else c for c in text)

    def end(self, process, terminal, status=0):
        rest = self.read(terminal)
        self.assertEqual((process.wait(120), process.stderr.read().decode()), (status, ""))
        return rest

    def test_conversation_is_remembered(self):
        process, terminal = self.converse(*self.GREEDY)
        self.assertEqual(self.read(terminal, until=b"> "), "> ")
        self.assertEqual(self.ask(terminal, HELLO), self.shown(CASES[0]["text"]))
        second = self.ask(terminal, "And you?")
        os.write(terminal, b"\x04")
        self.assertEqual(self.end(process, terminal), "\n")
        so_far = [{"role": "user", "content": HELLO}, {"role": "assistant", "content": CASES[0]["text"]}]
        self.assertEqual(second, self.shown(self.answer("--messages", self.file(so_far), "And you?", *self.GREEDY)[:-1]))

    def test_commands_and_blocks(self):
        system, question = (message["content"] for message in CASES[1]["messages"])
        process, terminal = self.converse(*self.GREEDY)
        self.read(terminal, until=b"> ")
        os.write(terminal, b"/system " + system.encode() + b"\n")
        self.read(terminal, until=b"\n> ")
        self.assertEqual(self.ask(terminal, question), self.shown(CASES[1]["text"]))
        for line in ("/system", "/clear"):
            os.write(terminal, line.encode() + b"\n")
            self.read(terminal, until=b"\n> ")
        self.assertIn("/bye", self.ask(terminal, "/help"))
        os.write(terminal, b'"""Hello, who\n')
        self.assertTrue(self.read(terminal, until=b"\n... ").endswith("\n... "))
        self.assertEqual(self.ask(terminal, 'are you?"""'),
                         self.shown(self.answer("Hello, who\nare you?", *self.GREEDY)[:-1]))
        os.write(terminal, b"/bye\n")
        self.read(terminal)
        self.assertEqual(process.wait(120), 0)
        notes = process.stderr.read().decode().splitlines()
        self.assertEqual(notes, ["syrinx: the system's message is replaced", "syrinx: there is no system's message now",
                                 "syrinx: the conversation is forgotten"])

    def interrupt(self, process, terminal):
        """False where the answer was over before Ctrl-C came, and that at the prompt has ended the conversation."""
        os.write(terminal, HELLO.encode() + b"\n")
        got = b""
        while len(got) < len(HELLO) + 60:
            got += os.read(terminal, 16)
        os.write(terminal, b"\x03")
        return self.read(terminal, until=b"\n> ").endswith("\n> ")

    def test_control_c_stops_the_answer_alone(self):
        for _ in range(10):  # an answer takes seconds of computing, the test none
            process, terminal = self.at_prompt(self.endless())
            self.read(terminal, until=b"> ")
            if all(self.interrupt(process, terminal) for _ in range(3)):
                break
            self.end(process, terminal)
        else:
            self.fail("each answer was over before it was stopped")
        self.assertIsNone(process.poll())
        os.write(terminal, b"\x03")
        self.end(process, terminal)

    def test_control_c_in_a_block_drops_it(self):
        process, terminal = self.converse(*self.GREEDY)
        self.read(terminal, until=b"> ")
        os.write(terminal, b'"""Nothing\n')
        self.read(terminal, until=b"\n... ")
        os.write(terminal, b"\x03")
        self.read(terminal, until=b"\n> ")
        self.assertEqual(self.ask(terminal, HELLO), self.shown(CASES[0]["text"]))
        os.write(terminal, b"\x03")
        self.end(process, terminal)

    def test_termination_has_its_status(self):
        process, terminal = self.converse(*self.GREEDY)
        self.read(terminal, until=b"> ")
        process.send_signal(signal.SIGTERM)
        self.read(terminal)
        self.assertEqual((process.wait(120), process.stderr.read()), (143, b"syrinx: stopped while reading\n"))

    def test_oldest_exchanges_make_room(self):
        process, terminal = self.converse(*self.LIKELIEST, "--max-tokens", "30", "--context", "250")
        self.read(terminal, until=b"> ")
        answers = [self.ask(terminal, HELLO) for _ in range(4)]
        self.assertEqual(answers[0], self.shown(CASES[0]["text"][:len(answers[0])]))
        self.ask(terminal, " ".join(["word"] * 300))
        os.write(terminal, b"\x04")
        self.read(terminal)
        self.assertEqual(process.wait(120), 0)
        notes = process.stderr.read().decode()
        self.assertRegex(notes, r"longer than 250 tokens: its (\d+ )?oldest exchanges? (is|are) left out")
        self.assertRegex(notes.splitlines()[-1], r"tokens")


class DamagedFiles(Chat):
    def test_damaged_model_is_one_sentence(self):
        rng = random.Random(5)
        content = MODEL.read_bytes()
        head = content.index(b"token_embd.weight") + 2000  # with the vocabulary and the list of tensors

        def flipped(end):
            damaged = bytearray(content)
            damaged[rng.randrange(end)] ^= 1 << rng.randrange(8)
            return bytes(damaged)

        path = self.folder / "damaged.gguf"
        for damage in ([lambda: content[:rng.randrange(len(content))]] * 10 + [lambda: flipped(head)] * 20 +
                       [lambda: flipped(len(content))] * 10):
            path.write_bytes(damage())
            for arguments in (["inspect", path], ["chat", "--model", path, "--threads", "1", "--max-tokens", "2", "hi"]):
                code, _, errors = self.run_it(*arguments)
                self.assertIn(code, (0, 4, 5, 6), errors)
                if code != 0:
                    self.assertRegex(errors, r"^syrinx: [^\n]+\n$")


if __name__ == "__main__":
    unittest.main()
