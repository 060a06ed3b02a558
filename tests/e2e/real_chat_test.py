"""The installed language model (label `real`): `syrinx pull smollm2` comes first; without it these tests fail."""
import json
import unittest

from program import Program
from server import Server


class LanguageModel(Program):
    home = "the user's own"

    def chat(self, *arguments, text=b""):
        code, output, errors = self.run_it("chat", *arguments, text=text)
        self.assertEqual((code, errors), (0, ""))
        return output.decode()

    def test_facts_in_every_precision(self):
        for precision in ("int8", "int4", "bf16", "f32"):
            greedy = ("--temperature", "0", "--max-tokens", "40", "--precision", precision)
            self.assertIn("7", self.chat("How many days has a week?", *greedy))
            self.assertIn("Shakespeare", self.chat("Who wrote Hamlet?", *greedy))

    def test_seed_repeats_the_answer(self):
        question = ("Tell me a story of two birds.", "--max-tokens", "60")
        first = self.chat(*question)
        self.assertGreater(len(first.split()), 20)
        self.assertEqual(self.chat(*question), first)
        self.assertNotEqual(self.chat(*question, "--seed", "1"), first)

    def test_figures(self):
        last = json.loads(self.chat("Good morning!", "--temperature", "0", "--json").splitlines()[-1])
        self.assertEqual((last["end"], last["model"], last["precision"], last["context"]), ("stop", "smollm2", "int8", 4096))
        self.assertGreater(last["prompt_tokens"], 20)  # with the system's message of the model's template
        self.assertLess(last["peak_rss_bytes"], 400 << 20)

    def test_long_text_from_a_pipe(self):
        prose = b"The river was wide, and the bridge was old. " * 150
        self.assertGreater(len(self.chat("Summarise this.", "--max-tokens", "10", text=prose)), 1)
        self.check_fails(6, "tokens", "chat", text=prose * 4)

    def test_inspect_and_doctor(self):
        code, output, errors = self.run_it("doctor", "--quick")
        self.assertRegex(output.decode(), r"\nlanguage +smollm2: .+\.gguf\nloads in +\d+ ms\n")
        path = output.decode().split("smollm2: ")[1].splitlines()[0]
        code, output, errors = self.run_it("inspect", path, "--json")
        self.assertEqual((code, errors), (0, ""))
        description = json.loads(output)
        self.assertEqual((description["kind"], description["model"]), ("gguf", "llama"))
        self.assertEqual(len(description["tensors"]), 272)
        self.assertEqual(description["facts"]["types"], "Q4_1 210, f32 61, Q8_0 1")


class Served(Server):
    home = "the user's own"

    def answer(self, question):
        asked = {"messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 60}
        status, _, body = self.request("POST", "/v1/chat/completions", json.dumps(asked), {"Content-Type": "application/json"})
        self.assertEqual(status, 200, body)
        reply = json.loads(body)
        return reply["choices"][0]["message"]["content"], reply["usage"]["prompt_tokens_details"]["cached_tokens"]

    def test_answer_does_not_depend_on_the_cache(self):
        question = "Name three rivers of Europe, and say where they end."
        self.start_server(model=["--speech-model", "", "--recognition-model", "", "--chat-model", "smollm2", "--chat-slots", "1"])
        first, none = self.answer(question)
        self.answer(question + " Be brief.")
        again, some = self.answer(question)
        repeated, most = self.answer(question)
        self.assertEqual((again, repeated), (first, first))
        self.assertLess(none, some)
        self.assertLess(some, most)


if __name__ == "__main__":
    unittest.main()
