#!/usr/bin/env python3
"""A language model's real server behind /v1/realtime: `transformers serve` with a tiny Llama of random weights, which is
made here, and whose answers end at the limit alone.  Prints what the client was told in each case.

usage: SYRINX_BINARY=build/release/syrinx SYRINX_TEST_DATA=tests/data PYTHONPATH=build/clients \\
         python3 tools/judge/upstream.py PYTHON       PYTHON has torch, and transformers[serving] 5.23 and accelerate
"""
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = """the a and of to in is it you that he was for on are with as his they at be this have from or one had by word but
not what all were we when your can said there use an each which she do how their if will up other about out many then them
these so some her would make like him into time has look two more write go see number no way could people""".split()


def make(folder):
    """Of words alone, each followed by any other."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    special = ["<unk>", "<s>", "</s>"]
    vocabulary = {word: i for i, word in enumerate([*special, *WORDS, *(word + "." for word in WORDS)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    template = "{% for message in messages %}{{ message['role'] }} {{ message['content'] }} {% endfor %}"
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                                      chat_template=template)
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=len(vocabulary), hidden_size=256, intermediate_size=512, num_hidden_layers=8,
                         num_attention_heads=4, max_position_embeddings=8192, bos_token_id=1, eos_token_id=2)
    model = LlamaForCausalLM(config)
    model.lm_head.weight.data.normal_(0, 2)
    model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=2, max_new_tokens=1024,
                                               suppress_tokens=list(range(len(special))))
    model.save_pretrained(folder / "endless")
    wrapped.save_pretrained(folder / "endless")


class Serving:
    def __init__(self, python, folder):
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment.update(HF_HUB_OFFLINE="1", PYTHONUNBUFFERED="1")
        program = [python, "-c", "from transformers.cli.transformers import main; main()", "serve", "--device", "cpu", "--host", "127.0.0.1", "--port", "0"]
        self.process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, env=environment)
        self.lines, self.port, told = [], None, threading.Event()

        def read():
            for line in self.process.stdout:
                self.lines.append(line.rstrip())
                if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                    self.port = int(found[1])
                    told.set()
            told.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        told.wait(300)
        if self.port is None:
            raise SystemExit("the server did not start:\n" + "\n".join(self.lines[-20:]))

    def busy_s(self):
        """Of processors, so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def busy_until_idle_s(self):
        """Until half a second goes by with next to no work."""
        begun = last = self.busy_s()
        while True:
            time.sleep(0.5)
            now = self.busy_s()
            if now - last < 0.05:
                return now - begun
            last = now

    def posts(self):
        """Ports of the clients, and statuses, of what was asked so far."""
        return re.findall(r"127\.0\.0\.1:(\d+) - \"POST /v1/chat/completions HTTP/1\.1\" (\d+)", "\n".join(self.lines))


def judge(python):
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    from realtime_clients_test import Realtime
    from server import MODEL

    class Talk(Realtime):
        def runTest(self):
            model_folder = self.folder / "models"
            model_folder.mkdir()
            subprocess.run([python, __file__, "--make", model_folder], check=True)
            print(subprocess.run([python, "-c", "import torch, transformers; print(f'transformers {transformers.__version__}, "
                                  "torch {torch.__version__}')"], check=True, capture_output=True, text=True).stdout.strip())
            self.serving = Serving(python, self.folder)
            try:
                self.talk(model_folder)
            finally:
                self.serving.process.terminate()
                self.serving.process.wait(60)

        def serve(self, model, *arguments):
            if self.server is not None:
                self.end_server()
            self.start_server("--upstream", f"http://127.0.0.1:{self.serving.port}/v1", "--upstream-model", str(model),
                              "--upstream-timeout-s", "120", *arguments, model=MODEL, variables={"no_proxy": "127.0.0.1"})

        def write(self, client, text):
            self.say(client, "conversation.item.create", item={"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": text}]})
            self.hear_until(client, "conversation.item.done")

        def ask(self, client, text, **response):
            """The end of the response, its text, and seconds to its first words, its first sound and its end."""
            self.write(client, text)
            begun, told, words = time.monotonic(), {}, ""
            self.say(client, "response.create", response=response)
            while True:
                event = self.hear(client, 600)
                told.setdefault(event["type"], time.monotonic() - begun)
                words += event["delta"] if event["type"] in ("response.output_audio_transcript.delta", "response.output_text.delta") else ""
                if event["type"] == "response.done":
                    marks = ("response.output_audio_transcript.delta", "response.output_audio.delta", "response.done")
                    return event["response"], words, [round(told[mark], 2) for mark in marks if mark in told]

        def print_end(self, what, response, words, times):
            details = response["status_details"]
            why = details.get("reason") or details.get("error", {}).get("message", "")
            print(f"{what}: {response['status']} {why}\n  {len(words.split())} words ({words[:60]!r}...); "
                  f"first words, first sound and end after {times} s")

        def talk(self, folder):
            self.serve(folder / "endless")
            with self.session() as client:
                self.write(client, "Hello.")
                self.ask(client, "the first one loads the model", output_modalities=["text"], max_output_tokens=8)
                before = len(self.serving.posts())
                for i in range(3):
                    self.print_end(f"answer {i + 1}", *self.ask(client, "what is it", max_output_tokens=24))
                posts = self.serving.posts()[before:]
                print(f"{len(posts)} answers by {len({port for port, _ in posts})} connections")
            with self.session() as client:
                idle = self.serving.busy_s()
                whole, words, times = self.ask(client, "go on", output_modalities=["text"])
                print(f"an endless answer: {whole['status']}, {len(words.split())} words, {self.serving.busy_s() - idle:.1f} s of work, {times[-1]} s")
                self.write(client, "go on")
                self.say(client, "response.create")
                self.hear_until(client, "response.output_audio.delta")
                self.say(client, "response.cancel")
                response = self.hear_until(client, "response.done")[-1]["response"]
                print(f"cancelled at its first sound: {response['status']}, and {self.serving.busy_until_idle_s():.1f} s more of work there")
                long = " ".join(WORDS * 60)[:4000]
                for _ in range(7):
                    self.write(client, long)
                self.print_end("a prompt of 32000 characters", *self.ask(client, "and now", max_output_tokens=5))
            self.serve(folder / "unknown")
            with self.session() as client:
                self.print_end("an unknown model", *self.ask(client, "Hello."))
            print("its log:", *(line for line in self.serving.lines if "Error" in line or "exception" in line.lower()), sep="\n  ")

    import unittest
    if not unittest.TextTestRunner().run(Talk()).wasSuccessful():
        raise SystemExit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(pathlib.Path(sys.argv[2]))
    elif len(sys.argv) == 2 and not sys.argv[1].startswith("-"):
        judge(sys.argv[1])
    else:
        raise SystemExit(__doc__)
