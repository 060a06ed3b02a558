"""The page with the installed models (label `real`), and a real recording as the microphone: `syrinx pull kokoro whisper-base silero-vad`
comes first, and Debian's pocketsphinx-testdata; without them this test fails."""
import unittest
import wave

from chat_endpoint import ChatEndpoint, begin, done, say
from page_test import Page
from program import wav

RECORDING = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0890.wav"
SAID = ["cold", "hearted", "selfish", "disposed"]  # of "unless to be rather cold hearted and rather selfish is to be ill disposed"


class Microphone(Page):
    home = "the user's own"  # models and caches as they are installed

    def start_talking(self, silence_s, *arguments, **options):
        """The recording, again and again, with a pause behind it."""
        with wave.open(RECORDING) as recording:
            rate = recording.getframerate()
            sound = recording.readframes(recording.getnframes())
        microphone = self.folder / "microphone.wav"
        microphone.write_bytes(wav(bytes(rate) + sound + bytes(int(2 * rate * silence_s)), rate=rate))
        self.start_server(*arguments, model=[], **options)
        self.open_page(microphone=microphone)

    def written(self, selector):
        return self.browser.run("return [...document.querySelectorAll(arguments[0])].map((line) => line.textContent)", selector)

    def has_said(self, lines):
        return any(all(word in line.lower() for word in SAID) for line in lines)

    def test_what_is_dictated_is_written(self):
        self.start_talking(silence_s=3)
        self.browser.run("""window.live = 0;
            new MutationObserver(() => window.live += document.querySelectorAll('#dictated [data-kind=live]').length)
              .observe(document.getElementById('dictated'), {childList: true, subtree: true, characterData: true})""")
        self.browser.click("#dictate-toggle")
        self.browser.wait_for(lambda: self.has_said(self.written("#dictated [data-kind=said]")))
        self.browser.wait_for(lambda: self.browser.run("return window.live") > 0)  # words before their turn is over; it is said again
        self.assertEqual(self.browser.text("#dictate-toggle"), "Stop dictation")
        self.browser.click("#dictate-toggle")
        self.browser.wait_for(lambda: self.browser.text("#dictate-toggle") == "Start dictation")
        self.wait_for(lambda: self.free_slots("recognition") == 4)
        self.wait_for(lambda: self.metric("syrinx_realtime_sessions") == 0)
        self.assertEqual(self.browser.text("#dictate-fault"), "")
        self.check_stopped_in_a_turn()
        self.browser.click("#dictate-clear")
        self.assertEqual(self.written("#dictated li"), [])

    def check_stopped_in_a_turn(self):
        """The turn's words come all the same."""
        before = len(self.written("#dictated li"))
        self.browser.click("#dictate-toggle")
        self.wait_for_text("#dictate-told", "Hearing you")
        self.browser.wait_for(lambda: self.written("#dictated [data-kind=live]"))
        self.browser.click("#dictate-toggle")
        self.browser.wait_for(lambda: self.browser.text("#dictate-toggle") == "Start dictation")
        self.assertGreater(len(self.written("#dictated [data-kind=said]")), before)
        self.assertEqual(self.written("#dictated [data-kind=live]"), [])
        self.assertEqual(self.browser.text("#dictate-fault"), "")

    def test_what_is_said_is_answered_until_it_is_interrupted(self):
        def answer(handler, _):
            begin(handler)
            say(handler, "I heard you well. ", *["And here is one more sentence. "] * 20)
            done(handler)

        endpoint = ChatEndpoint(answer)
        self.addCleanup(endpoint.end)
        self.start_talking(8, "--upstream", endpoint.url, variables={"no_proxy": "127.0.0.1"})
        self.browser.click("#talk-toggle")
        self.browser.wait_for(lambda: any("heard you well" in line for line in self.written("#talked [data-kind=spoken]")))
        self.browser.wait_for(lambda: self.heard()["peak"] > 0.01)
        self.browser.wait_for(lambda: self.written("#talked [data-kind=interrupted]"))
        self.browser.wait_for(lambda: len(endpoint.requests) > 1)  # the next turn's
        self.browser.click("#talk-toggle")
        self.assertEqual(self.browser.text("#talk-fault"), "")
        first, second = (body["messages"] for _, _, body in endpoint.requests[:2])
        self.assertTrue(self.has_said([first[-1]["content"]]), first)
        heard = second[-2]
        self.assertEqual((heard["role"], heard["content"][:17]), ("assistant", "I heard you well."))
        self.assertLess(len(heard["content"]), 400)  # of 638 characters, those that were heard
        self.wait_for(lambda: (self.free_slots(), self.free_slots("recognition")) == (4, 4))

    def test_what_is_said_is_repeated_until_it_is_interrupted(self):
        self.start_talking(silence_s=3)  # what is repeated is 6 s: long enough to be spoken into, however soon it begins
        self.browser.run("""new MutationObserver((changes) => {
              if (window.interrupted !== undefined || !changes.some(({target}) => target.dataset.kind === 'interrupted')) return;
              window.interrupted = window.loudspeaker.currentTime;
              setInterval(() => {  // 2 s of the loudspeaker's later: seconds of the answer were still to be heard
                if (window.loudspeaker.currentTime > window.interrupted + 2) window.late ??= [window.heard.loudPlayed - window.interrupted];
              }, 15);
            }).observe(document.getElementById('talked'), {attributes: true, subtree: true})""")
        self.browser.click("#talk-toggle")
        self.browser.wait_for(lambda: self.has_said(self.written("#talked [data-kind=spoken]")))
        self.browser.wait_for(lambda: self.heard()["peak"] > 0.01)
        # By the loudspeaker's clock, which a page that stands still does not make longer.
        late_s = self.browser.wait_for(lambda: self.browser.run("return window.late"))[0]
        self.assertLess(late_s, 1)  # in which the sound that was on its way has ended
        self.browser.click("#talk-toggle")
        self.wait_for(lambda: (self.free_slots(), self.free_slots("recognition")) == (4, 4))
        self.browser.wait_for(self.is_silent)
        self.assertEqual(self.browser.text("#talk-fault"), "")


if __name__ == "__main__":
    unittest.main()
