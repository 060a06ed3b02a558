"""`syrinx serve` with modules: a request finds its model, waits while it is loaded, and is answered as by that model alone."""
import functools
import json
import os
import shutil
import threading
import unittest

from program import DATA, noise, tiny_whisper, wav
from server import Server, form

READER, SECOND = DATA / "pocket_tts/english", DATA / "pocket_tts/english_2m"
TINY_CHAT = DATA / "llama/chat_smollm/chat_smollm.gguf"
KNOWN = json.loads((DATA / "llama/chat_smollm/expected.json").read_text())[0]
GREEDY = {"temperature": 0, "repetition_penalty": 1, "max_tokens": len(KNOWN["answer"])}
SOUND = wav(noise(20800))
ASLEEP = {"load": "first-use", "keep_alive": 0}
UPGRADE = (b"GET /v1/realtime?model=reader HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
           b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")


def module(kind, model, **keys):
    """A table of the settings file; JSON's texts, numbers and lists are TOML's, too."""
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in {"kind": kind, "model": str(model), **keys}.items()]
    return "\n[[module]]\n" + "".join(lines)


def reader(model=READER, **keys):
    return module("speech", model, **{"id": "reader", "threads": 1, "voice": "ann",
                                      "voices": [f"ann={READER / 'voice.safetensors'}"], **keys})


def second(**keys):
    return module("speech", SECOND, id="second", threads=1, voice="ben", voices=[f"ben={SECOND / 'voice.safetensors'}"], **keys)


def talker(model=TINY_CHAT, **keys):
    return module("chat", model, **{"id": "talker", "precision": "f32", "threads": 1, **keys})


class Modules(Server):
    def settings(self, *modules, **settings):
        """A file of them; of the kinds that no module has there is no model."""
        path = self.folder / "syrinx.toml"
        settings = {"speech_model": "", "recognition_model": "", **settings}
        for kind in ("speech", "recognition"):
            if any(f'kind = "{kind}"' in each for each in modules):
                del settings[f"{kind}_model"]
        path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()) + "".join(modules))
        return path

    def serve(self, *modules, **settings):
        self.start_server("--config", self.settings(*modules, **settings), model=[])

    def serve_all(self, **keys):
        """All four; the last three with these keys."""
        self.serve(reader(), second(**keys), talker(**keys),
                   module("recognition", tiny_whisper(self.folder / "tiny"), id="ear", threads=1, slots=4, live_slots=1, **keys))

    def states(self):
        return {each["id"]: each["state"] for each in json.loads(self.request("GET", "/ready")[2])["modules"]}

    def wait_for_state(self, name, state="unloaded"):
        self.wait_for(lambda: self.states()[name] == state)

    def answer(self, name, model=None):
        """Headers, and the sound or words."""
        model = name if model is None else model
        if name == "talker":
            status, headers, body = self.chat(model)
        elif name == "ear":
            status, headers, body = self.transcribe(SOUND, model=model, temperature="0")
        else:
            status, headers, body = self.speak("Hi.", response_format="wav", model=model)
        self.assertEqual(status, 200, body)
        if name == "talker":
            return headers, json.loads(body)["choices"][0]["message"]["content"]
        return headers, json.loads(body)["text"] if name == "ear" else body

    def chat(self, name):
        return self.request("POST", "/v1/chat/completions", {"messages": KNOWN["messages"], "model": name, **GREEDY})

    def check_answer(self, name, model=None):
        """As of that model alone; the headers."""
        headers, got = self.answer(name, model)
        self.check_same(got, alone()[name])
        return headers

    def check_missing(self, path, name, body, **options):
        _, message = self.check_refused(404, "model_not_found", "model", "POST", path, body, **options)
        self.assertEqual(message, f"there is no model '{name}'; GET /v1/models lists all")

    def hold_session(self):
        """A session of /v1/realtime, which uses its modules until the socket is closed."""
        connection = self.connect()
        connection.sendall(UPGRADE)
        heard = b""
        while b"session.created" not in heard:
            more = connection.recv(4096)
            self.assertTrue(more, heard)
            heard += more
        return connection

    def totals(self, name):
        return tuple(self.metric('syrinx_model_%s_total{model="%s"}' % (total, name)) for total in ("loads", "unloads"))


@functools.cache
def alone():
    """Answers by module of a server with one model; the language model's is that of its maker's code."""
    answers = {"talker": KNOWN["text"]}
    for name, voice in (("reader", "ann"), ("second", "ben"), ("ear", "")):
        other = Modules()
        other.setUp()
        if name == "ear":
            model = ["--speech-model", "", "--recognition-threads", "1", "--recognition-model", tiny_whisper(other.folder / "tiny")]
        else:
            folder = READER if name == "reader" else SECOND
            model = ["--recognition-model", "", "--threads", "1", "--speech-model", folder, "--voice", voice, "--voices",
                     f"{voice}={folder / 'voice.safetensors'}"]
        other.start_server(model=model)
        answers[name] = other.answer(name, model="")[1]
        other.seen.clear()
        other.tearDown()
    return answers


class Choice(Modules):
    def test_names_choose_a_module(self):
        installed = self.folder / "home/data/models/pocket-tts@english"
        shutil.copytree(READER, installed)
        config = installed / "config.yaml"
        config.write_text(config.read_text().replace("../", f"{READER.parent}/"))
        self.serve(reader("pocket-tts", names=["narrator"]), second(), talker(),
                   module("recognition", tiny_whisper(self.folder / "tiny"), id="ear", threads=1))
        for model in ("", "tts-1", "gpt-4o-mini-tts-2025-03-20", "reader", "narrator", "Kyutai/Pocket-TTS"):
            self.check_answer("reader", model)
        self.check_answer("second")
        for model in ("", "gpt-4o", "talker"):
            self.check_answer("talker", model)
        for model in ("", "whisper-1", "ear"):
            self.check_answer("ear", model)
        for model in ("nobody", "talker", "ear", "whisper-1"):
            self.check_missing("/v1/audio/speech", model, {"input": "Hi.", "model": model})
        for model in ("nobody", "reader"):
            self.check_missing("/v1/chat/completions", model, {"messages": KNOWN["messages"], "model": model})
            self.check_missing("/v1/audio/transcriptions", model, form(SOUND, model=model),
                               headers={"Content-Type": "multipart/form-data; boundary=b"})
        for query, voices in (("", ["ann"]), ("?model=narrator", ["ann"]), ("?model=second", ["ben"])):
            listed = json.loads(self.request("GET", "/v1/audio/voices" + query)[2])["voices"]
            self.assertEqual([voice["id"] for voice in listed], voices)

    def test_models_say_whether_they_are_loaded(self):
        self.serve_all(load="first-use")
        self.check_answer("talker")
        listed = json.loads(self.request("GET", "/v1/models")[2])["data"]
        self.assertEqual({each["id"]: (each["loaded"], bool(each["languages"])) for each in listed},
                         {"reader": (True, True), "second": (False, False), "talker": (True, False), "ear": (False, False)})
        shown = json.loads(self.request("GET", "/ready")[2])["modules"]
        self.assertEqual([(each["id"], each["kind"], each["state"]) for each in shown],
                         [("reader", "speech", "loaded"), ("second", "speech", "unloaded"), ("talker", "chat", "loaded"),
                          ("ear", "recognition", "unloaded")])
        for each in shown:
            self.assertEqual(self.metric('syrinx_model_loaded{model="%s"}' % each["id"]), each["state"] == "loaded")


class OnDemand(Modules):
    def test_models_come_and_go(self):
        self.serve_all(**ASLEEP)
        self.assertNotIn("X-Syrinx-Waited", self.check_answer("reader"))
        for _ in range(2):
            for name in ("second", "talker", "ear"):
                headers = self.check_answer(name)
                if name != "ear":  # which is loaded from the request's head on: its body may come later
                    self.assertGreater(float(headers["X-Syrinx-Waited"]), 0)
            for name in ("second", "talker", "ear"):
                self.wait_for_state(name)
        self.assertEqual(self.states()["reader"], "loaded")
        self.assertEqual(self.totals("reader"), (1, 0))
        for name in ("second", "talker", "ear"):
            loads, unloads = self.totals(name)
            self.assertEqual(loads, unloads)
            self.assertGreaterEqual(loads, 2)
            self.assertEqual(self.metric('syrinx_model_memory_bytes{model="%s"}' % name), 0)
        self.end_server()
        self.assertTrue(any("waited_ms" in line for line in self.logged("request")))
        for event in ("model_loaded", "model_unloaded"):
            self.assertEqual({line["model"] for line in self.logged(event)}, {"second", "talker", "ear"})

    def test_all_at_once_answer_as_alone(self):
        self.serve_all(**ASLEEP)
        got = {}

        def use(name, client):
            for number in range(2):
                got[name, client, number] = self.answer(name)[1]

        threads = [threading.Thread(target=use, args=(name, client)) for name in alone() for client in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(got), 16)
        for (name, *_), answer in got.items():
            self.check_same(answer, alone()[name])
        for name in ("second", "talker", "ear"):
            self.wait_for_state(name)

    def test_leaving_while_waiting_costs_others_nothing(self):
        self.serve_all(**ASLEEP)

        def leave():
            """True: it was still loading when the client, who was not the only one to wait, went."""
            connection = self.connect()
            self.ask(connection, "Hi.", model="second")
            got = []
            other = threading.Thread(target=lambda: got.append(self.answer("second")[1]))
            other.start()
            self.wait_for(lambda: self.states()["second"] != "unloaded")
            loading = self.states()["second"] == "loading"
            connection.close()
            other.join()
            self.check_same(got[0], alone()["second"])
            self.wait_for_state("second")
            return loading

        self.wait_for(leave)
        self.wait_for(lambda: self.free_slots() == 8)
        self.check_answer("second")

    def test_a_session_keeps_its_modules(self):
        self.serve_all(**ASLEEP)
        session = self.hold_session()
        self.check_answer("second")
        self.wait_for_state("second")  # used behind the session's beginning
        self.assertEqual(self.states()["ear"], "loaded")
        self.check_answer("ear")
        session.close()
        self.wait_for_state("ear")


class Budget(Modules):
    def test_models_in_use_stay_and_idle_ones_make_room(self):
        """The file of `large` has all of the budget, so that no other model may be loaded beside it."""
        budget_mb = 128
        large = self.folder / "large.gguf"
        shutil.copy(TINY_CHAT, large)
        os.truncate(large, budget_mb << 20)
        idle = {"load": "first-use", "keep_alive": "1h"}
        self.serve(reader(**idle), talker(**idle), talker(large, id="large", **idle), memory_budget_mb=budget_mb)
        self.check_answer("talker")
        session = self.hold_session()
        headers, message = self.check_refused(503, "memory_budget", None, "POST", "/v1/chat/completions",
                                              {"messages": KNOWN["messages"], "model": "large"})
        self.assertEqual(headers["Retry-After"], "5")
        self.assertRegex(message, rf"^the model 'large' needs about {budget_mb} MB, and models in use hold \d+ of the {budget_mb} MB of "
                                  r"memory_budget_mb; ask again when they are idle, or have the operator raise it$")
        self.assertEqual(self.states(), {"reader": "loaded", "talker": "loaded", "large": "unloaded"})
        self.check_answer("talker")
        self.assertEqual(self.metric('syrinx_rejected_total{reason="memory_budget"}'), 1)
        session.close()
        self.wait_for(lambda: self.chat("large")[0] == 200)
        self.assertEqual(self.states(), {"reader": "unloaded", "talker": "unloaded", "large": "loaded"})
        self.assertEqual((self.totals("reader"), self.totals("talker"), self.totals("large")), ((1, 1), (1, 1), (1, 0)))
        self.check_answer("talker", "large")
        self.check_answer("talker")
        self.check_answer("reader")


class Faults(Modules):
    def check_told(self, status, words, *modules, **settings):
        """By --check, and by the start."""
        path = self.settings(*modules, **settings)
        self.check_fails(status, words, "serve", "--config", path, "--check")
        self.check_fails(status, words, "serve", "--config", path, "--port", "0")

    def test_names_that_several_modules_have(self):
        self.check_told(2, "[[module]] 1 and [[module]] 2 are both called 'reader'; give one of them another id or name",
                        reader(), talker(id="reader"))
        self.check_told(2, "[[module]] 1 and [[module]] 2 are both called 'ann'", reader(names=["ann"]), second(names=["ann"]))
        self.check_told(2, "'chat_model' and [[module]] 1 are both called 'chat_smollm'", reader(id="chat_smollm"),
                        chat_model=str(TINY_CHAT))

    def test_a_budget_that_holds_too_little(self):
        large = self.folder / "large.gguf"
        shutil.copy(TINY_CHAT, large)
        os.truncate(large, 3 << 20)
        self.check_told(6, "'memory_budget_mb' is 2, and the model of [[module]] 2 has 3 MB; raise it",
                        reader(), talker(large, load="first-use"), memory_budget_mb=2)
        self.check_told(6, "'memory_budget_mb' is 4, and the models that are loaded at the start have 6 MB; raise it, or give some "
                           "of them load = \"first-use\"", talker(large), talker(large, id="b"), memory_budget_mb=4)

    def test_a_model_that_outgrows_its_file(self):
        """It takes more memory than the budget has, though its file does not; that shows at the start alone."""
        path = self.settings(talker(), memory_budget_mb=1)
        self.assertEqual(self.run_it("serve", "--config", path, "--check")[0], 0)
        status, _, errors = self.run_it("serve", "--config", path, "--port", "0")
        self.assertEqual(status, 6, errors)
        self.assertIn("of the 1 MB of memory_budget_mb", errors)
        self.assertNotIn("answers at", errors)

    def test_the_start_tells_faults_once(self):
        broken = self.folder / "broken.gguf"
        broken.write_bytes(TINY_CHAT.read_bytes()[:-1000])
        status, _, errors = self.run_it("serve", "--config", self.settings(talker(broken)), "--port", "0")
        self.assertNotEqual(status, 0, errors)
        self.assertEqual(errors.count("\n"), 2, errors)  # loading it, and the fault

    def test_models_that_are_missing(self):
        for later in ({}, {"load": "first-use"}):
            self.check_told(3, "[[module]] 2: there is no file or folder", reader(), talker(self.folder / "none.gguf", **later))
            self.check_told(3, "[[module]] 2: model 'smollm2' is not installed; fetch it with `syrinx pull smollm2`", reader(),
                            talker("smollm2", **later))

    def test_tables_that_are_wrong(self):
        for words, table in (("a module needs 'kind'", '[[module]]\nmodel = "kokoro"\n'),
                             ("a module needs 'model'", '[[module]]\nkind = "chat"\n'),
                             ("'context' is no key of a module of kind speech; there are kind, id", reader(context=4)),
                             ("'keep_alive' is something else; give seconds", reader(keep_alive="soon")),
                             ("'load' is something else; give \"start\" or \"first-use\"", reader(load="later"))):
            self.check_told(2, words, table)


if __name__ == "__main__":
    unittest.main()
