"""The page of `syrinx serve` in a real Chromium: what it writes of sessions, its keys, and the policy that it is served with."""
import contextlib
import unittest

from page_test import Page


class Listening(Page):
    def test_what_cannot_be_is_told_in_a_sentence(self):
        self.start_recogniser("--max-sessions", "1")  # and no model of voice activity is installed
        self.open_page()
        for panel in ("dictate", "talk"):
            self.browser.click(f"#{panel}-toggle")
            self.wait_for_text(f"#{panel}-fault", "silero-vad")
            self.wait_for_text(f"#{panel}-toggle", "Start")
            self.wait_for(lambda: self.metric("syrinx_realtime_sessions") == 0)
        with self.session():
            self.browser.click("#dictate-toggle")
            self.wait_for_text("#dictate-fault", "it may be busy")

    def test_without_a_recogniser_nothing_offers_to_hear(self):
        self.start_server()
        self.open_page()
        self.browser.wait_for(lambda: self.browser.run("return document.getElementById('speak').checkVisibility()"))
        for panel in ("dictate", "talk"):
            self.assertFalse(self.browser.run("return document.getElementById(arguments[0]).checkVisibility()", panel))

    def hold_sessions(self):
        """They stay open, though no model of voice activity is there: what says what they are to be does not reach the server, nor does
        any sound.  What read_aloud() gives is gathered."""
        self.browser.run("""
            const send = WebSocket.prototype.send;
            WebSocket.prototype.send = function (text) {
              window.session = this;
              if (/input_audio_buffer.commit/.test(text)) send.call(this, text);
            };
            window.added = [];
            const watch = new MutationObserver((changes) => {
              for (const {addedNodes, target} of changes)
                window.added.push(...(addedNodes.length ? [...addedNodes] : [target]).map((node) => node.textContent));
            });
            for (const log of document.querySelectorAll('[role=log]')) watch.observe(log, {childList: true, characterData: true, subtree: true});""")

    def tell(self, *events):
        """The page, as its server would."""
        self.browser.run("for (const each of arguments[0]) window.session.dispatchEvent(new MessageEvent('message', {data: JSON.stringify(each)}))", events)

    def read_aloud(self):
        return self.browser.run("return window.added")

    @staticmethod
    def found(item, words):
        return {"type": "conversation.item.input_audio_transcription.delta", "item_id": item, "delta": words}

    @staticmethod
    def said(item, words):
        return {"type": "conversation.item.input_audio_transcription.completed", "item_id": item, "transcript": words}

    def begin(self, panel):
        self.browser.click(f"#{panel}-toggle")
        self.wait_for_text(f"#{panel}-told", "Listening")

    def saved(self, panel, name):
        """The file that a press of the button makes."""
        self.browser.chrome("Page.setDownloadBehavior", behavior="allow", downloadPath=str(self.folder))
        self.browser.click(f"#{panel}-save")
        file = self.folder / name  # empty at first: Chromium reserves the name
        return self.browser.wait_for(lambda: file.exists() and file.read_text(encoding="utf-8"))

    def test_what_is_dictated_is_read_aloud_once_and_saved(self):
        self.start_recogniser()
        self.open_page()
        self.browser.click("#dictate-save")
        self.wait_for_text("#dictate-told", "There is nothing to save yet.")
        self.browser.click("#dictate-clear")
        self.assertEqual(self.browser.text("#dictate-told"), "")
        self.browser.click("#dictate-copy")
        self.wait_for_text("#dictate-told", "There is nothing to copy yet.")
        self.hold_sessions()
        self.begin("dictate")
        self.tell(self.found("a", "grüne"), self.found("a", " Bäume"))
        self.wait_for_text("#dictated", "grüne Bäume")
        self.assertEqual(self.read_aloud(), [])
        self.tell(self.said("a", " Grüne Bäume. "), self.found("b", "und ein"))
        self.wait_for_text("#dictated", "und ein")
        self.assertEqual(self.browser.text("#dictated"), "Grüne Bäume.\nund ein")
        self.assertEqual(self.read_aloud(), ["Grüne Bäume."])
        self.assertEqual(self.saved("dictate", "dictation.txt"), "Grüne Bäume.\nund ein\n")
        self.browser.click("#dictate-toggle")  # what will not be found any more is complete
        self.wait_for_text("#dictate-toggle", "Start")
        self.assertEqual(self.read_aloud(), ["Grüne Bäume.", "und ein"])
        self.check_lists("#dictated")
        self.browser.click("#dictate-clear")
        self.assertEqual(self.browser.text("#dictated"), "")

    def test_what_is_answered_is_read_aloud_once_and_saved(self):
        self.start_recogniser("--upstream", "http://127.0.0.1:9/v1")  # nobody is asked
        self.open_page()
        self.hold_sessions()
        self.begin("talk")
        self.tell(self.said("a", "Who is there?"), {"type": "response.created", "response": {"id": "r"}})
        self.tell(*({"type": "response.output_audio_transcript.delta", "response_id": "r", "delta": words} for words in ("It is ", "me.")))
        self.wait_for_text("#talked", "It is me.")
        self.assertEqual(self.read_aloud(), ["Who is there?"])
        self.tell({"type": "response.done", "response": {"status": "completed"}})
        self.browser.wait_for(lambda: self.read_aloud() == ["Who is there?", "It is me."])
        self.check_lists("#talked")
        self.assertEqual(self.saved("talk", "conversation.txt"), "Who is there?\nServer: It is me.\n")

    def check_lists(self, box):
        """What is read aloud holds a list, and is none: the role would take its items from it."""
        for part, role in ((box, "group"), (f"{box} > div", "log"), (f"{box} > div > ol", "list"), (f"{box} li", "listitem")):
            self.assertEqual(self.browser.label_and_role(self.browser.find(part))[1], role)
        self.assertEqual(self.browser.run("return document.querySelectorAll('ol[role], ul[role]').length"), 0)

    def test_a_toggle_is_stopped_where_it_was_started_by_the_keyboard_alone(self):
        self.start_recogniser()
        self.open_page()
        self.hold_sessions()
        self.browser.wait_for(lambda: self.browser.run("return document.getElementById('clone').checkVisibility()"))
        for toggle in ("clone-record", "talk-toggle", "dictate-toggle"):
            while self.browser.run("return document.activeElement.id") != toggle:
                self.browser.press("tab")
            begin = self.browser.text(f"#{toggle}")
            for words in ("Stop", begin, "Stop", begin):
                self.browser.press(" ")
                self.wait_for_text(f"#{toggle}", words)
                self.assertEqual(self.browser.run("return document.activeElement.id"), toggle)
        self.assertEqual(self.browser.run("return document.querySelectorAll('[aria-pressed]').length"), 0)  # their names say it

    @contextlib.contextmanager
    def session(self):
        """Of another client, opened on a plain socket."""
        other = self.connect()
        other.sendall(b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                      b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        self.assertTrue(other.recv(100).startswith(b"HTTP/1.1 101 "))
        yield
        other.close()

    def is_expected(self, line):
        return line["source"] in ("network", "javascript") and "WebSocket connection" in line["message"] and "503" in line["message"]


class Gone(Page):
    def test_that_the_server_has_gone_is_told(self):
        self.start_recogniser()
        self.open_page()
        self.browser.wait_for(lambda: self.browser.run("return document.getElementById('dictate').checkVisibility()"))
        self.end_server()
        for panel, words in (("dictate", "Dictation did not begin"), ("talk", "The talk did not begin")):
            self.browser.click(f"#{panel}-toggle")
            self.wait_for_text(f"#{panel}-fault", f"{words}: the server cannot be reached.")
        self.browser.click("#clone-record")
        self.wait_for_text("#clone-fault", "Nothing was recorded: the server cannot be reached.")

    def is_expected(self, line):
        gone = {"network": "ERR_CONNECTION_REFUSED", "worker": "(Network error)"}
        return gone.get(line["source"], "not expected") in line["message"]


class Keys(Page):
    def test_the_page_asks_for_the_key(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        self.start_server("--api-key-file", keys)
        self.open_page()
        self.wait_for_question()
        self.assertEqual(self.browser.text("#key-fault"), "")
        self.assertNotIn("Authorization", self.browser.text("body"))
        self.browser.write("#key", "wrong")
        self.browser.press("enter")
        self.wait_for_text("#key-fault", "This key was not accepted.")
        self.assertEqual(self.browser.run("return document.getElementById('key').value"), "")
        self.assertEqual(self.browser.run("return document.getElementById('key-fault').getAttribute('role')"), "alert")
        self.browser.press("escape")
        self.wait_for_text("#page-fault", "The models are not known: this key was not accepted.")
        self.wait_for_text("#state-fault", "this key was not accepted")
        self.assertNotIn("Authorization", self.browser.text("body"))
        self.browser.click("#give-key")
        self.wait_for_question()
        self.browser.write("#key", "secret")
        self.browser.press("enter")
        self.browser.wait_for(lambda: self.browser.run("return document.getElementById('voice').options.length > 1"))
        self.browser.write("#text", "Hello there.")
        self.browser.click("#say")
        self.browser.wait_for(lambda: self.heard()["peak"] > 0.001)
        self.assertEqual(self.browser.run("return sessionStorage.length + localStorage.length"), 1)

    def start_with_key(self, key):
        keys = self.folder / "keys"
        keys.write_text(key)
        self.start_recogniser("--api-key-file", keys)
        self.open_page()
        self.wait_for_question()

    def wait_for_question(self):
        self.browser.wait_for(lambda: self.browser.run("return document.getElementById('key-dialog').open"))

    def give(self, key):
        self.browser.write("#key", key)
        self.browser.press("enter")
        self.browser.wait_for(lambda: self.browser.run("return document.getElementById('dictate').checkVisibility()"))

    def test_a_key_that_no_subprotocol_may_have_opens_a_session(self):
        self.start_with_key("a+b/c=")
        self.give("a+b/c=")
        self.browser.click("#dictate-toggle")
        self.wait_for_text("#dictate-fault", "silero-vad")  # which the session itself has told

    def test_a_key_that_no_header_may_have_is_told(self):
        self.start_with_key("secret")
        self.browser.write("#key", "ключ")
        self.browser.press("enter")
        self.wait_for_text("#key-fault", "No request can bear an API key with other letters than ASCII's")
        self.wait_for_question()
        self.browser.press("escape")
        self.wait_for_text("#page-fault", "no request can bear an API key with other letters than ASCII's")
        self.browser.click("#give-key")
        self.wait_for_question()
        self.give("secret")

    def test_no_fault_of_the_browser_shows_the_key(self):
        self.start_with_key("a+b/c=")
        self.give("a+b/c=")
        self.browser.run("window.WebSocket = class { constructor(_, protocols) { throw new DOMException(`'${protocols[1]}' is invalid: a+b/c=`); } }")
        self.browser.click("#dictate-toggle")
        self.wait_for_text("#dictate-fault", "Dictation did not begin: the browser opens no session with this server")
        self.assertNotIn("a+b/c=", self.browser.text("body"))

    def is_expected(self, line):
        return line["source"] == "network" and "401" in line["message"]


class Policy(Page):
    def test_what_is_not_the_servers_own_is_stopped(self):
        self.start_server()
        self.open_page()
        elsewhere = "http://127.0.0.1:9/nothing"
        for script, directive in (
                ("fetch(url).catch(() => {})", "connect-src"),
                ("new WebSocket(url.replace('http', 'ws'))", "connect-src"),
                ("new Image().src = url", "img-src"),
                ("new Image().src = 'data:image/gif;base64,R0lGOD'", "img-src"),
                ("new Audio().src = url", "media-src"),
                ("new FontFace('a', `url(${url})`).load().catch(() => {})", "font-src"),
                ("add('link', {rel: 'stylesheet', href: url})", "style-src-elem"),
                ("add('style', {textContent: 'p { color: red }'})", "style-src-elem"),
                ("document.body.setAttribute('style', 'color: red')", "style-src-attr"),
                ("import(url).catch(() => {})", "script-src-elem"),
                ("add('base', {href: url})", "base-uri"),
                ("add('form', {action: url, method: 'post'}).submit()", "form-action"),
                ("add('iframe', {src: url})", "frame-src"),
                ("document.body.innerHTML = '<p>'", "require-trusted-types-for"),
                ("trustedTypes.createPolicy('any', {})", "trusted-types")):
            with self.subTest(script):
                self.browser.run(f"""const url = arguments[0];
                    const add = (name, fields) => {{
                      const made = Object.assign(document.createElement(name), fields);
                      document.body.append(made);
                      return made;
                    }};
                    window.violations.length = 0;
                    try {{ {script}; }} catch {{}}""", elsewhere)
                self.browser.wait_for(lambda: directive in self.browser.run("return window.violations"))
        self.browser.run("window.violations.length = 0; performance.clearResourceTimings()")
        self.browser.wait_for(lambda: self.browser.run("return performance.getEntriesByType('resource').length"))

    def is_expected(self, line):
        return line["source"] == "security" or "Content Security Policy" in line["message"] or "TrustedHTML" in line["message"]


if __name__ == "__main__":
    unittest.main()
