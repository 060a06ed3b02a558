"""The page of `syrinx serve` in a real Chromium, with small random checkpoints."""
import http.client
import json
import re
import subprocess
import unittest

from browser import Browser
from program import DATA, tiny_whisper, wav
from server import LONG, MODEL, Server


class Page(Server):
    """open_page() for each test; what every page must hold is checked behind the test."""

    browser = None

    def tearDown(self):
        try:
            if self.browser is not None:
                self.check_page()
        finally:
            if self.browser is not None:
                self.browser.quit()
            super().tearDown()

    def open_page(self, address=None, ready="document.getElementById('voice').options.length > 1", **options):
        self.address = address or f"http://{self.host}:{self.port}"
        self.browser = Browser(self.folder, **options)
        self.browser.open(self.address + "/")
        self.wait_for_text("#ready", "ready")
        # What the server can do is shown, or a key is asked for: the panels come a moment later.
        self.browser.wait_for(lambda: self.browser.run(f"return {ready} || document.getElementById('key-dialog').open"))

    def start_recogniser(self, *arguments):
        self.start_server("--recognition-model", tiny_whisper(self.folder / "tiny"), *arguments, model=MODEL[2:])

    def check_page(self):
        """No request to anywhere else, nothing against the policy, no error that the test has not asked for."""
        fetched = self.browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        self.assertTrue(fetched)
        origin = "/".join(self.address.split("/")[:3])
        for url in fetched:
            self.assertTrue(url.startswith((self.address + "/", f"blob:{origin}/")), url)
        self.assertEqual(self.browser.run("return window.violations"), [])
        self.assertEqual([line for line in self.browser.log() if not self.is_expected(line)], [])

    def is_expected(self, _line):
        return False

    def wait_for_text(self, selector, words, seconds=120):
        self.browser.wait_for(lambda: words in self.browser.text(selector), seconds)

    def heard(self):
        return self.browser.run("return window.heard")

    def is_silent(self):
        """For the last half second."""
        return self.browser.run("return performance.now() - window.heard.loudAt > 500")


class Speaking(Page):
    def test_a_text_is_heard_while_it_is_made_and_kept(self):
        self.start_server()
        self.open_page()
        self.browser.wait_for(lambda: self.browser.run("return document.querySelectorAll('#voice option').length") == 3)
        self.assertEqual(self.heard()["peak"], 0)
        self.browser.run("document.getElementById('voice').value = 'bob'")
        self.browser.write("#text", "Hello there.")
        self.browser.click("#say")
        self.browser.wait_for(lambda: self.heard()["peak"] > 0.001)
        self.wait_for_text("#speak-told", "real-time factor")
        self.wait_for_text("#first-sound", " ms")  # the server's figure
        factor = (self.metric('syrinx_compute_seconds_total{model="english"}') /
                  self.metric('syrinx_audio_seconds_total{model="english",direction="out"}'))
        self.assertGreater(factor, 0)
        self.wait_for_text("#factor", f"{factor:.2f}")
        self.browser.wait_for(lambda: self.browser.run("return document.querySelector('#speak form').dataset.playing") == "false")
        self.browser.wait_for(self.is_silent)
        self.browser.wait_for(self.is_heard_in_the_picture)
        self.check_file(self.spoken(voice="bob"))
        self.assertEqual(self.browser.text("#speak-fault"), "")

    def is_heard_in_the_picture(self):
        """The waveform has bars of more than one height, all of them in the colour of what has been heard, once it has been painted."""
        drawn = self.browser.run("""
            const canvas = document.getElementById('wave');
            const paint = canvas.getContext('2d');
            const points = paint.getImageData(0, 0, canvas.width, canvas.height).data;
            const heights = new Set(), colours = new Set();
            for (let x = 1; x < canvas.width; x += 4) {
              let height = 0;
              for (let y = 0; y < canvas.height; ++y) {
                const at = 4 * (y * canvas.width + x);
                if (points[at + 3] < 250) continue;
                ++height;
                colours.add(points.slice(at, at + 3).join());
              }
              heights.add(height);
            }
            return {heights: heights.size, colours: [...colours], accent: getComputedStyle(canvas).getPropertyValue('--accent')}""")
        accent = [int(drawn["accent"][i:i + 2], 16) for i in (1, 3, 5)]
        shades = (max(abs(int(a) - b) for a, b in zip(colour.split(","), accent)) for colour in drawn["colours"])
        return drawn["heights"] > 3 and all(shade < 4 for shade in shades)  # blended edges are a shade off

    def check_file(self, samples):
        """What `Save as WAV` makes is what the server spoke."""
        saved = self.browser.do("POST", "/execute/async", script="""
            const done = arguments[0];
            const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => { blob.arrayBuffer().then((b) => done([...new Uint8Array(b)])); return make(blob); };
            document.getElementById('save').click();""", args=[])
        self.check_same(bytes(saved), wav(samples, rate=24000))

    def test_what_has_been_heard_before_its_end_came_is_heard_in_the_picture(self):
        self.start_server()
        self.open_page()
        self.browser.run("""const real = window.fetch;
            window.fetch = async (path, options) => {
              const reply = await real(path, options);
              if (!path.endsWith('/speech')) return reply;
              const reader = reply.body.getReader();
              return new Response(new ReadableStream({async pull(sound) {
                const part = await reader.read();
                if (!part.done) return sound.enqueue(part.value);
                await new Promise((resolve) => { window.end = resolve; });
                sound.close();
              }}));
            }""")
        self.browser.write("#text", "Hello there.")
        self.browser.click("#say")
        self.browser.wait_for(lambda: self.heard()["peak"] > 0.001 and self.browser.run("return window.end !== undefined"))
        self.browser.wait_for(lambda: self.browser.run("return document.querySelector('#speak form').dataset.playing") == "false")
        self.browser.run("window.end()")
        self.wait_for_text("#speak-told", "real-time factor")
        self.browser.wait_for(self.is_heard_in_the_picture)

    def test_stop_stops(self):
        self.start_server()
        self.open_page()
        self.browser.write("#text", LONG)
        self.browser.click("#say")
        self.browser.wait_for(lambda: self.heard()["peak"] > 0.001)
        self.wait_for(lambda: self.browser.run("return document.getElementById('stop').ariaDisabled") == "false")
        self.browser.click("#stop")
        self.browser.wait_for(self.is_silent)
        self.wait_for(lambda: self.free_slots() == 4)
        self.assertEqual(self.browser.run("return document.getElementById('stop').ariaDisabled"), "true")
        self.browser.click("#say")  # again, and Escape does the same
        before = self.heard()["loudAt"]
        self.browser.wait_for(lambda: self.heard()["loudAt"] > before)
        self.browser.run("document.getElementById('text').focus()")
        self.browser.press("escape")
        self.browser.wait_for(self.is_silent)

    def test_the_state_is_shown(self):
        self.start_server("--speech-slots", "1", "--stalled-reader-s", "600")
        self.open_page()
        self.wait_for_text("#slots", "0 of 1 slots busy")
        busy = self.connect(receive_bytes=4096)
        self.ask(busy)
        self.wait_for_text("#slots", "1 of 1 slots busy")
        self.browser.click("#say")
        self.wait_for_text("#speak-fault", "the only slot is busy")
        self.wait_for_text("#refused", "1")
        self.browser.run("""const real = window.fetch;
            window.fetch = async (path, options) => {
              const reply = await real(path, options);
              if (String(path) !== "metrics") return reply;
              reply.text = () => Promise.reject(new TypeError("the connection broke"));
              return reply;
            };
            window.whole = () => { window.fetch = real; };""")
        self.wait_for_text("#state-fault", "No figures: the server cannot be reached.")
        self.browser.run("window.whole()")
        self.browser.wait_for(lambda: self.browser.text("#state-fault") == "")
        busy.close()
        self.wait_for_text("#slots", "0 of 1 slots busy")
        self.end_server()
        self.wait_for_text("#ready", "the server cannot be reached")

    def is_expected(self, line):
        """The browser's own lines of an answer that is an error, or that does not come."""
        return line["source"] == "network" and ("503" in line["message"] or "net::ERR_" in line["message"])


class Cloning(Page):
    statuses = (404, 409)  # that a test asks for

    def options(self):
        return self.browser.run("return [...document.querySelectorAll('#voice option')].map((option) => option.value)")

    def chosen(self):
        return self.browser.run("return document.getElementById('voice').value")

    def make(self, name, file=None):
        self.browser.write("#clone-name", name)
        if file is not None:
            self.browser.do("POST", f"/element/{self.browser.find('#clone-file')}/value", text=str(file))
        self.browser.click("#clone-make")

    def recorded_s(self):
        """As the button tells while it records."""
        told = re.search(r"\((\d+) s\)", self.browser.text("#clone-record"))
        return int(told[1]) if told else -1

    def test_a_file_becomes_a_voice_that_speaks_and_goes(self):
        self.start_server()
        self.open_page()
        self.browser.click("#clone-make")
        self.wait_for_text("#clone-fault", "Give the voice a name first")
        self.make("me")
        self.wait_for_text("#clone-fault", "Choose a recording")
        self.make("me", DATA / "pocket_tts/voice.wav")
        self.wait_for_text("#clone-told", "me is made, and speaks from now on.")
        self.assertEqual((self.options(), self.chosen()), (["", "ann", "bob", "me"], "me"))
        self.browser.write("#text", "Hello there.")
        self.browser.click("#say")
        self.wait_for_text("#speak-told", "real-time factor")
        self.browser.wait_for(lambda: self.heard()["peak"] > 0.001)
        self.check_same(self.spoken(voice="me"), self.spoken(voice="bob"))  # of the same recording
        self.browser.run("document.getElementById('voice').value = ''")
        self.browser.click("#clones li button")
        self.assertEqual(self.chosen(), "me")
        for label, button in (("Use me", 2), ("Delete me", 3)):
            self.assertEqual(self.browser.label_and_role(self.browser.find(f"#clones li :nth-child({button})")), (label, "button"))
        self.make("me", DATA / "pocket_tts/voice.wav")
        self.wait_for_text("#clone-fault", "is taken")
        self.browser.click("#clones li :nth-child(3)")
        self.wait_for_text("#clone-told", "Press again to delete me.")
        self.assertIn("me", self.options())
        self.browser.click("#clones li :nth-child(3)")
        self.wait_for_text("#clone-told", "me is deleted.")
        self.assertEqual((self.options(), self.chosen()), (["", "ann", "bob"], ""))
        self.assertEqual(self.browser.run("return document.getElementById('clones').children.length"), 0)

    def test_what_the_microphone_hears_becomes_a_voice(self):
        self.start_server()
        self.open_page(microphone=DATA / "pocket_tts/voice.wav")
        self.browser.click("#clone-record")
        self.wait_for_text("#clone-told", "Recording")
        self.assertEqual(self.browser.label_and_role(self.browser.find("#clone-record")), ("Stop recording", "button"))
        self.browser.wait_for(lambda: self.recorded_s() >= 2)
        self.browser.click("#clone-record")
        self.wait_for_text("#clone-told", "s have been recorded.")
        self.assertGreaterEqual(float(self.browser.text("#clone-told").split()[0]), 2)
        self.assertEqual(self.browser.text("#clone-record"), "Record")
        self.make("recorded")
        self.wait_for_text("#clone-told", "recorded is made")
        self.assertTrue(self.spoken(voice="recorded"))

    def test_what_the_browser_records_by_itself_is_read(self):
        """By its MediaRecorder: Opus in WebM, a whole whose length is never known."""
        self.start_recogniser()
        self.open_page(microphone=DATA / "pocket_tts/voice.wav")
        self.browser.run("""
            (async () => {
              const stream = await navigator.mediaDevices.getUserMedia({audio: true});
              const recorder = new MediaRecorder(stream, {mimeType: 'audio/webm;codecs=opus'});
              const parts = [];
              recorder.ondataavailable = (event) => {
                parts.push(event.data);
                if (recorder.state === 'recording' && new Blob(parts).size > 20000) recorder.stop();
              };
              recorder.onstop = async () => {
                stream.getTracks().forEach((track) => track.stop());
                window.recorded = [...new Uint8Array(await new Blob(parts).arrayBuffer())];
              };
              recorder.start(200);
            })();""")
        self.browser.wait_for(lambda: self.browser.run("return window.recorded !== undefined"), 120)
        sound, file = bytes(self.browser.run("return window.recorded")), self.folder / "recorded.webm"
        file.write_bytes(sound)
        self.assertEqual(sound[:4], b"\x1a\x45\xdf\xa3")
        decoded = subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-i", file, "-f", "s16le", "-ar", "48000", "-ac", "1", "-"],
                                 check=True, capture_output=True).stdout
        status, _, body = self.transcribe(sound, response_format="verbose_json")
        self.assertEqual(status, 200, body)
        self.assertAlmostEqual(json.loads(body)["duration"], len(decoded) / 96000, delta=0.02)
        self.make("recorded", file)
        self.wait_for_text("#clone-told", "recorded is made", 120)
        self.assertTrue(self.spoken(voice="recorded"))

    def test_one_press_deletes_nothing(self):
        self.start_server()
        self.open_page()
        self.make("me", DATA / "pocket_tts/voice.wav")
        self.wait_for_text("#clone-told", "me is made")
        press, armed = "#clones li :nth-child(3)", "Really delete"
        self.browser.click(press)
        self.wait_for_text(press, armed)
        self.browser.click("#clone-name")  # and something else is done
        self.wait_for_text(press, "Delete")
        self.assertEqual(self.browser.text("#clone-told"), "")
        self.browser.click(press)
        self.wait_for_text(press, armed)
        self.assertEqual(self.request("DELETE", "/v1/audio/voices/me")[0], 200)  # by somebody else
        self.browser.click(press)
        self.wait_for_text("#clone-fault", "me was not deleted")
        self.assertEqual(self.browser.text(press), "Delete")

    def test_an_error_of_the_server_is_told_and_counted(self):
        self.statuses = (500,)
        self.start_server()
        self.open_page()
        self.browser.wait_for(lambda: self.browser.text("#errors") == "0")
        self.make("me", DATA / "pocket_tts/voice.wav")
        self.wait_for_text("#clone-told", "me is made")
        file = self.folder / "home/data/voices/english/me.safetensors"
        file.unlink()
        file.mkdir()  # which nobody deletes as if it was a file
        self.browser.click("#clones li :nth-child(3)")
        self.wait_for_text("#clones li :nth-child(3)", "Really delete")
        self.browser.click("#clones li :nth-child(3)")
        self.wait_for_text("#clone-fault", "me was not deleted")
        self.browser.wait_for(lambda: self.browser.text("#errors") == "1")
        self.assertEqual(self.browser.text("#refused"), "0")

    def test_a_voice_is_made_though_the_list_does_not_come(self):
        self.start_server()
        self.open_page()
        self.browser.run("""const real = window.fetch;
                            window.fetch = (path, options) => options.method ? real(path, options) : Promise.reject(new Error("none"))""")
        self.make("me", DATA / "pocket_tts/voice.wav")
        self.wait_for_text("#clone-told", "me is made")
        self.wait_for_text("#clone-fault", "The list of voices is an old one: the server cannot be reached.")

    def test_what_is_chosen_meanwhile_stops_a_recording_that_begins(self):
        self.start_server()
        self.open_page(microphone=DATA / "pocket_tts/voice.wav")
        self.browser.run("""const devices = navigator.mediaDevices, open = devices.getUserMedia.bind(devices);
                            devices.getUserMedia = async (wanted) => {
                              window.opened = await open(wanted);
                              await new Promise((resolve) => { window.goOn = resolve; });
                              return window.opened;
                            };""")
        self.browser.click("#clone-record")
        self.browser.wait_for(lambda: self.browser.run("return window.goOn !== undefined"))
        self.make("me", DATA / "pocket_tts/voice.wav")
        self.wait_for_text("#clone-told", "me is made")
        self.browser.run("window.goOn()")
        self.browser.wait_for(lambda: self.browser.run("return window.opened.getTracks().every((track) => track.readyState === 'ended')"))
        self.assertEqual(self.browser.text("#clone-record"), "Record")
        self.assertIn("me is made", self.browser.text("#clone-told"))

    def test_without_uploads_nothing_offers_them(self):
        self.start_server("--voices-dir", "")
        self.open_page()
        self.browser.wait_for(lambda: self.browser.run("return document.querySelectorAll('#voice option').length") == 3)
        self.assertFalse(self.browser.run("return document.getElementById('clone').checkVisibility()"))

    def is_expected(self, line):
        return line["source"] == "network" and any(f"status of {status}" in line["message"] for status in self.statuses)


class Reachable(Page):
    def test_every_control_has_a_label_and_is_reached_by_the_keyboard(self):
        self.start_recogniser()
        self.open_page()
        controls = self.browser.run("""return [...document.querySelectorAll('main button, main select, main textarea, main input, main canvas, a')]
                                              .filter((each) => each.checkVisibility()).map((each) => each.id || each.tagName)""")
        cloning = ("clone-file", "clone-record", "clone-make")
        buttons = ("say", "stop", "save", *cloning, "talk-toggle", "talk-save", "dictate-toggle", "dictate-copy", "dictate-save",
                   "dictate-clear")
        pictures = ("wave", "dictate-wave", "talk-wave", "clone-wave")
        roles = {"text": "textbox", "voice": "combobox", "clone-name": "textbox", "A": "link", **dict.fromkeys(buttons, "button"), **dict.fromkeys(pictures, "img")}
        for name in controls:
            label, role = self.browser.label_and_role(self.browser.find("footer a" if name == "A" else f"#{name}"))
            self.assertTrue(label, name)
            self.assertIn(role, (roles[name], "image" if name in pictures else roles[name]), name)
        self.assertEqual(set(roles), set(controls))
        self.browser.run("document.getElementById('save').disabled = false")
        reached = []
        for _ in range(16):
            self.browser.press("tab")
            reached.append(self.browser.run("return document.activeElement.id || document.activeElement.tagName"))
        self.assertEqual(reached, ["text", "voice", *buttons[:3], "clone-name", *buttons[3:], "A"])
        for title, words in (("speak", "Speak"), ("clone", "Clone a voice"), ("dictate", "Dictate"), ("talk", "Talk"), ("state", "State")):
            self.assertEqual(self.browser.label_and_role(self.browser.find(f"#{title}")), (words, "region"))

    def test_nothing_is_wider_than_a_phone(self):
        self.start_recogniser()
        self.open_page(size=(390, 844))
        self.wait_for_text("#slots", "slots busy")
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)
        self.browser.look((320, 640), dark=False)  # or a desk's at four times the size
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 320)
        small = self.browser.run("""return [...document.querySelectorAll('button, select, textarea, input')].filter((each) =>
                                      each.checkVisibility() && each.getBoundingClientRect().height < 44).map((each) => each.id)""")
        self.assertEqual(small, [])


class Files(Server):
    def test_what_the_page_is_served_with(self):
        self.start_server()
        status, headers, body = self.request("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        own, nothing = ("script-src", "style-src", "img-src", "connect-src"), ("default-src", "base-uri", "form-action", "frame-ancestors", "trusted-types")
        self.assertEqual(policy, {**dict.fromkeys(own, "'self'"), **dict.fromkeys(nothing, "'none'"), "require-trusted-types-for": "'script'"})
        self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("nosniff", "no-referrer"))
        status, again, nothing = self.request("GET", "/", headers={"If-None-Match": headers["ETag"]})
        self.assertEqual((status, nothing, again["ETag"]), (304, b"", headers["ETag"]))
        self.assertEqual(self.request("GET", "/", headers={"If-None-Match": '"other"'})[0], 200)
        status, headers, empty = self.request("HEAD", "/")
        self.assertEqual((status, empty, int(headers["Content-Length"])), (200, b"", len(body)))
        for name, kind in (("page.css", "text/css; charset=utf-8"), ("page.js", "text/javascript; charset=utf-8"), ("icon.svg", "image/svg+xml")):
            self.assertEqual(self.request("GET", f"/assets/{name}")[1]["Content-Type"], kind)
        for path in ("/assets/", "/assets/nobody.js", "/assets/../server.js", "/assets/page.css/", "/index.html", "/assets/page%2Fcss"):
            self.check_refused(404, "unknown_url", None, "GET", path)
        self.assertEqual(self.request("POST", "/", {})[1]["Allow"], "GET")
        self.assertEqual(self.request("POST", "/assets/page.css", {})[1]["Allow"], "GET")

    def test_a_connection_stays_open_behind_what_has_not_changed(self):
        self.start_server()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        connection.request("GET", "/")
        reply = connection.getresponse()
        reply.read()
        for _ in range(2):
            connection.request("GET", "/", headers={"If-None-Match": reply.headers["ETag"]})
            again = connection.getresponse()
            self.assertEqual((again.status, again.read(), again.headers["Content-Length"]), (304, b"", None))
        connection.request("GET", "/health")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_its_address_is_told(self):
        self.start_server()
        self.wait_for(lambda: [line for line in self.lines if f"page: http://127.0.0.1:{self.port}/" in line])


if __name__ == "__main__":
    unittest.main()
