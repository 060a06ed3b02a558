"""The page of `syrinx serve` in a real Chromium, with several models of a kind."""
import json
import os
import pathlib
import shutil
import unittest

from page_test import Page
from program import DATA, tiny_whisper
from server import ENGLISH

NO_EAR = 'recognition_model = ""\n'
SPEECH = """[[module]]
kind = "speech"
model = "{english}"
id = "first"
voices = ["ann={english}/voice.safetensors"]
voice = "ann"

[[module]]
kind = "speech"
model = "{english}"
id = "second"
voices = ["bob={data}/pocket_tts/voice.wav"]
voice = "bob"
load = "first-use"
"""
RECOGNITION = """
[[module]]
kind = "recognition"
model = "{folder}/ear"
id = "ear"

[[module]]
kind = "recognition"
model = "{folder}/other"
id = "other"
load = "first-use"
"""


class Models(Page):
    def start_modules(self, text):
        settings = self.folder / "syrinx.toml"
        settings.write_text(text.format(english=ENGLISH, data=DATA, folder=self.folder))
        self.start_server("--config", settings, model=[])

    def start_all(self):
        for name in ("ear", "other"):
            tiny_whisper(self.folder / name)
        self.start_modules(SPEECH + RECOGNITION)
        self.open_page()
        self.browser.wait_for(lambda: self.browser.run("return document.getElementById('talk-model').checkVisibility()"))

    def options(self, select):
        return self.browser.run("return [...document.getElementById(arguments[0]).options].map((option) => option.textContent)", select)

    def choose(self, select, value):
        self.browser.run("""const select = document.getElementById(arguments[0]);
            select.value = arguments[1];
            select.dispatchEvent(new Event('change', {bubbles: true}));""", select, value)

    def hold_answers(self, path):
        """Holds requests to `path` until window.goOn(); window.asked are the bodies."""
        self.browser.run("""const real = window.fetch, path = arguments[0];
            window.asked = [];
            const gate = new Promise((resolve) => { window.goOn = resolve; });
            window.fetch = async (to, options) => {
              if (!String(to).startsWith(path)) return real(to, options);
              window.asked.push(options.body);
              const reply = await real(to, options);
              await gate;
              return reply;
            };""", path)

    def is_loaded(self, name):
        found = json.loads(self.request("GET", "/v1/models")[2])["data"]
        return next(model["loaded"] for model in found if model["id"] == name)

    def test_choosing_a_model_lists_its_voices(self):
        self.start_modules(NO_EAR + SPEECH)
        self.open_page()
        self.assertEqual(self.options("speech-model"), ["first", "second, loads at first use"])
        self.assertEqual(self.options("voice"), ["The server’s own", "ann"])
        self.assertFalse(self.is_loaded("second"))
        self.hold_answers("v1/audio/voices?model=second")
        self.choose("speech-model", "second")
        self.wait_for_text("#speak-told", "Loading second…")
        self.assertEqual(self.options("voice"), ["The server’s own"])
        self.browser.wait_for(lambda: self.options("speech-model") == ["first", "second"])
        self.browser.run("window.goOn()")
        self.browser.wait_for(lambda: self.options("voice") == ["The server’s own", "bob"])
        self.assertEqual(self.browser.text("#speak-told"), "")
        self.choose("speech-model", "first")
        self.browser.wait_for(lambda: self.options("voice") == ["The server’s own", "ann"])

    def test_an_older_list_of_voices_is_dropped(self):
        self.start_modules(NO_EAR + SPEECH)
        self.open_page()
        self.hold_answers("v1/audio/voices?model=second")
        self.choose("speech-model", "second")
        self.wait_for_text("#speak-told", "Loading second…")
        self.choose("speech-model", "first")
        self.browser.wait_for(lambda: self.options("voice") == ["The server’s own", "ann"])
        self.assertEqual(self.browser.text("#speak-told"), "")
        self.browser.run("window.goOn()")
        self.wait_for(lambda: self.is_loaded("second"))
        self.browser.wait_for(lambda: self.options("speech-model") == ["first", "second"])
        self.assertEqual(self.options("voice"), ["The server’s own", "ann"])

    def test_a_model_that_cannot_be_loaded_is_told(self):
        copy = shutil.copytree(ENGLISH, self.folder / "copy")
        first, second = SPEECH.split('id = "second"')
        self.start_modules(NO_EAR + first[:first.rindex("model =")] + f'model = "{copy}"\nid = "second"' + second)
        self.open_page()
        shutil.rmtree(copy)
        self.choose("speech-model", "second")
        self.wait_for_text("#speak-fault", "The voices of second are not known: ")
        self.assertEqual(self.browser.text("#speak-told"), "")
        self.browser.wait_for(lambda: self.options("speech-model") == ["first", "second, could not be loaded"])
        self.choose("speech-model", "first")
        self.browser.wait_for(lambda: self.options("voice") == ["The server’s own", "ann"])
        self.assertEqual(self.browser.text("#speak-fault"), "")

    def test_the_chosen_model_speaks_once_loaded(self):
        self.start_modules(NO_EAR + SPEECH.replace('id = "first"', 'id = "first"\nload = "first-use"'))
        self.open_page(ready="document.getElementById('speak').checkVisibility()")
        self.assertEqual(self.options("voice"), ["The server’s own"])
        self.assertFalse(self.is_loaded("first"))  # by a page that is opened
        self.hold_answers("v1/audio/speech")
        self.browser.write("#text", "Hello there.")
        self.browser.click("#say")
        self.wait_for_text("#speak-told", "Loading first…")
        self.browser.run("window.goOn()")
        self.wait_for_text("#speak-told", "Loaded in")
        self.wait_for_text("#speak-told", "real-time factor")
        self.assertEqual(json.loads(self.browser.run("return window.asked[0]"))["model"], "first")
        self.browser.wait_for(lambda: self.options("voice") == ["The server’s own", "ann"])
        self.assertEqual(self.options("speech-model"), ["first", "second, loads at first use"])

    def test_voices_are_cloned_by_the_chosen_model(self):
        self.start_modules(NO_EAR + SPEECH)
        self.open_page()
        self.choose("speech-model", "second")
        self.browser.wait_for(lambda: self.options("voice") == ["The server’s own", "bob"])
        self.browser.write("#clone-name", "me")
        self.browser.do("POST", f"/element/{self.browser.find('#clone-file')}/value", text=str(DATA / "pocket_tts/voice.wav"))
        self.browser.click("#clone-make")
        self.wait_for_text("#clone-told", "me is made")
        self.assertEqual(self.options("voice"), ["The server’s own", "bob", "me"])
        self.choose("speech-model", "first")
        self.browser.wait_for(lambda: self.options("voice") == ["The server’s own", "ann"])
        self.assertEqual(self.browser.run("return document.getElementById('clones').children.length"), 0)
        self.choose("speech-model", "second")
        self.browser.wait_for(lambda: self.options("voice") == ["The server’s own", "bob", "me"])
        for _ in range(2):
            self.browser.click("#clones li :nth-child(3)")
        self.wait_for_text("#clone-told", "me is deleted.")
        self.assertEqual(self.options("voice"), ["The server’s own", "bob"])

    def watch_sessions(self):
        """window.sessions are the addresses, with what each session is to be: the server is not told, and window.told what is told."""
        self.browser.run("""const send = WebSocket.prototype.send;
            window.sessions = [];
            window.told = [];
            WebSocket.prototype.send = function (text) {
              const event = JSON.parse(text);
              if (event.type === 'session.update') window.sessions.push({query: new URL(this.url).search, session: event.session});
            };
            for (const told of document.querySelectorAll('#dictate-told, #talk-told'))
              new MutationObserver(() => window.told.push(told.textContent)).observe(told, {childList: true});""")

    def begin(self, panel):
        """The session's address and the words told meanwhile; it is ended."""
        self.browser.run("window.sessions = []; window.told = []")
        self.browser.click(f"#{panel}-toggle")
        self.wait_for_text(f"#{panel}-told", "Listening")
        found, told = self.browser.run("return [window.sessions, window.told]")
        self.browser.click(f"#{panel}-toggle")
        self.wait_for_text(f"#{panel}-toggle", "Start")
        self.assertEqual(len(found), 1)
        query, session = found[0]["query"], found[0]["session"]
        return query, session["audio"]["input"]["transcription"]["model"], session["audio"].get("output", {}).get("voice"), told

    def test_a_session_names_the_chosen_models(self):
        self.start_all()
        self.watch_sessions()
        self.assertEqual(self.options("dictate-model"), ["ear", "other, loads at first use"])
        self.browser.run("document.getElementById('voice').value = 'ann'")
        self.assertEqual(self.begin("talk"), ("?model=gpt-realtime", "ear", "ann", ["Listening: say something."]))
        query, model, _, told = self.begin("dictate")
        self.assertEqual((query, model, told[0]), ("?model=ear&intent=transcription", "ear", "Listening: say something."))
        self.choose("dictate-model", "other")
        query, model, _, told = self.begin("dictate")
        self.assertEqual((query, model, told[0]), ("?model=other&intent=transcription", "other", "Loading other…"))
        self.assertTrue(self.is_loaded("other"))
        self.choose("speech-model", "second")
        self.browser.wait_for(lambda: self.options("voice") == ["The server’s own", "bob"])
        self.browser.run("document.getElementById('voice').value = 'bob'")
        self.assertEqual(self.begin("talk")[:3], ("?model=second", "ear", "bob"))
        self.choose("talk-model", "other")
        query, model, voice, told = self.begin("talk")
        self.assertEqual((query, model, voice), ("?model=other", "other", None))
        self.assertIn("The server's first model speaks", told[-1])

    def test_the_server_takes_the_chosen_recogniser(self):
        self.start_all()
        for panel in ("dictate", "talk"):
            self.choose(f"{panel}-model", "other")
            self.browser.click(f"#{panel}-toggle")
            self.wait_for_text(f"#{panel}-fault", "silero-vad")  # is not installed, and no model is missing otherwise

    def test_the_choices_have_labels_and_room(self):
        self.start_all()
        for select, label in (("speech-model", "Model"), ("talk-model", "Recogniser"), ("dictate-model", "Recogniser")):
            self.assertEqual(self.browser.label_and_role(self.browser.find(f"#{select}")), (label, "combobox"))
        for dark in (False, True):
            for width in (320, 1280):
                self.browser.look((width, 1400), dark)
                if "SYRINX_PICTURES" in os.environ:
                    self.browser.picture(pathlib.Path(os.environ["SYRINX_PICTURES"]) / f"models_{width}_{dark}.png")
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)

    def test_language_and_instructions_are_given_where_the_model_takes_them(self):
        self.start_server(model=["--speech-model", DATA / "qwen_tts/voice_design", "--recognition-model", ""])
        self.open_page(ready="document.getElementById('instructions').checkVisibility()")  # it has no voices
        for name, found in (("speech-language", ("Language", "combobox")), ("instructions", ("Instructions", "textbox"))):
            self.assertEqual(self.browser.label_and_role(self.browser.find(f"#{name}")), found)
        self.assertEqual(self.options("speech-language")[:3], ["The text’s own", "Chinese", "English"])
        self.hold_answers("v1/audio/speech")
        self.choose("speech-language", "de")
        self.browser.write("#instructions", "A low voice.")
        self.browser.click("#say")
        self.browser.wait_for(lambda: self.browser.run("return window.asked.length") == 1)
        asked = json.loads(self.browser.run("window.goOn(); return window.asked[0]"))
        self.assertEqual((asked["language"], asked["instructions"]), ("de", "A low voice."))
        self.wait_for_text("#speak-told", "real-time factor")
        self.assertEqual(self.browser.text("#speak-fault"), "")

    def test_one_model_leaves_no_choice(self):
        self.start_recogniser()
        self.open_page()
        for select in ("speech-model", "talk-model", "dictate-model", "speech-language", "instructions"):
            self.assertFalse(self.browser.run("return document.getElementById(arguments[0]).checkVisibility()", select))

    def is_expected(self, line):
        return line["source"] == "network" and "503" in line["message"]


if __name__ == "__main__":
    unittest.main()
