"""The installed models behind `syrinx serve`, asked by OpenAI's Python package (label `real`): what the voice says, the
recogniser hears.  `syrinx pull kokoro whisper-base` and tests/e2e/clients.txt come first; without them this test fails."""
import re
import unittest

import openai

from server import Server

TEXT = "The quick brown fox jumps over the lazy dog, and the weather is fine today."


def words(text):
    return re.findall("[a-z]+", text.lower())


class Loop(Server):
    home = "the user's own"  # models and caches as they are installed

    def test_what_is_said_is_heard(self):
        self.start_server(model=[])
        with openai.OpenAI(base_url=f"http://{self.host}:{self.port}/v1", api_key="any", max_retries=0) as client:
            self.assertEqual([model.id for model in client.models.list()], ["kokoro", "whisper-base"])
            for form in ("mp3", "opus", "flac", "wav"):
                said = client.audio.speech.create(model="kokoro", voice="alloy", input=TEXT, response_format=form)
                heard = client.audio.transcriptions.create(model="whisper-1", file=(f"said.{form}", said.content))
                self.assertEqual(words(heard.text), words(TEXT), form)
            verbose = client.audio.transcriptions.create(model="whisper-1", file=("said.wav", said.content),
                                                         response_format="verbose_json", timestamp_granularities=["word"])
            self.assertEqual(([word for each in verbose.words for word in words(each.word)], verbose.language), (words(TEXT), "en"))
            begins = [word.start for word in verbose.words]
            self.assertEqual(begins, sorted(begins))
            self.assertLess(begins[-1], verbose.duration)


if __name__ == "__main__":
    unittest.main()
