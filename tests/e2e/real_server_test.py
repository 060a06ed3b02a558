"""The installed models behind `syrinx serve`, asked by OpenAI's Python package and Wyoming's (label `real`): what the voice says, the
recogniser hears.  `syrinx pull kokoro whisper-base` and tests/e2e/clients.txt come first; without them this test fails."""
import base64
import re
import subprocess
import time
import unittest

import openai
from wyoming.asr import Transcribe, Transcript, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.info import Describe, Info
from wyoming.tts import Synthesize

from server import Server
from wyoming_server import Wyoming

TEXT = "The quick brown fox jumps over the lazy dog, and the weather is fine today."


def words(text):
    return re.findall("[a-z]+", text.lower())


class Loop(Server):
    home = "the user's own"  # models and caches as they are installed

    def test_what_is_said_is_heard(self):
        self.start_server(model=[])
        with openai.OpenAI(base_url=f"http://{self.host}:{self.port}/v1", api_key="any", max_retries=0) as client:
            self.assertEqual([model.id for model in client.models.list()], ["kokoro", "whisper-base"])
            for form in ("mp3", "opus", "aac", "flac", "wav"):
                said = client.audio.speech.create(model="kokoro", voice="alloy", input=TEXT, response_format=form)
                heard = client.audio.transcriptions.create(model="whisper-1", file=(f"said.{form}", said.content))
                self.assertEqual(words(heard.text), words(TEXT), form)
            verbose = client.audio.transcriptions.create(model="whisper-1", file=("said.wav", said.content),
                                                         response_format="verbose_json", timestamp_granularities=["word"])
            self.assertEqual(([word for each in verbose.words for word in words(each.word)], verbose.language), (words(TEXT), "en"))
            for form, codec in (("webm", "libopus"), ("mp4", "aac")):  # as browsers record
                path = self.folder / f"said.{form}"
                subprocess.run(["ffmpeg", "-v", "error", "-i", "-", "-codec:a", codec, path], input=said.content, check=True)
                heard = client.audio.transcriptions.create(model="whisper-1", file=path)
                self.assertEqual(words(heard.text), words(TEXT), form)
            begins = [word.start for word in verbose.words]
            self.assertEqual(begins, sorted(begins))
            self.assertLess(begins[-1], verbose.duration)


class Live(Server):
    """What the voice says, sent at the pace of speech, comes back as its words."""
    home = "the user's own"

    def send(self, connection, sound):
        """In chunks of 100 ms; a microphone goes on for a second behind the words."""
        began = time.monotonic()
        for i, at in enumerate(range(0, len(sound), 4800)):
            connection.input_audio_buffer.append(audio=base64.b64encode(sound[at:at + 4800]).decode())
            time.sleep(max(0, began + 0.1 * (i + 1) - time.monotonic()))

    def transcript(self, connection):
        kinds = []
        for event in connection:
            self.assertNotEqual(event.type, "error", event)
            kinds.append(event.type)
            if event.type == "conversation.item.input_audio_transcription.completed":
                return kinds, event.transcript
        self.fail(kinds)

    def test_turns_come_back_as_words(self):
        self.start_server(model=[])
        text = "The quick brown fox jumps over the lazy dog."
        with openai.OpenAI(base_url=f"http://{self.host}:{self.port}/v1", api_key="any", max_retries=0) as client:
            sound = client.audio.speech.create(model="kokoro", voice="alloy", input=text, response_format="pcm").content
            with client.realtime.connect(model="gpt-realtime") as connection:
                self.assertEqual(connection.recv().session.audio.input.turn_detection.type, "server_vad")
                connection.session.update(session={"type": "realtime", "audio": {"input": {
                    "transcription": {"model": "whisper-1", "language": "en"}}}})
                self.assertEqual(connection.recv().type, "session.updated")
                for _ in range(2):
                    self.send(connection, bytes(24000) + sound + bytes(48000))
                    kinds, heard = self.transcript(connection)
                    self.assertEqual(words(heard), words(text))
                    self.assertEqual(kinds[:5], ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped",
                                                 "input_audio_buffer.committed", "conversation.item.added",
                                                 "conversation.item.done"])
                connection.session.update(session={"type": "realtime", "audio": {"input": {"turn_detection": None}}})
                self.assertEqual(connection.recv().type, "session.updated")
                self.send(connection, sound)
                connection.input_audio_buffer.commit()
                self.assertEqual(words(self.transcript(connection)[1]), words(text))


class Assistant(Wyoming):
    """As Home Assistant's pipeline does: what one voice says over Wyoming, the recogniser hears over Wyoming."""
    home = "the user's own"

    def start_server(self, *arguments):
        super().start_server(*arguments, model=[])

    def test_what_is_said_is_heard(self):
        self.start_wyoming()

        async def say_and_hear(client):
            await client.write_event(Describe().event())
            info = Info.from_event(await client.read_event())
            self.assertEqual([model.name for program in info.asr for model in program.models], ["whisper-base"])
            self.assertEqual(len(info.asr[0].models[0].languages), 99)
            await client.write_event(Synthesize(text=TEXT).event())
            sound = await self.hear(client, AudioStop)
            for language in (None, "en"):
                await client.write_event(Transcribe(language=language).event())
                await client.write_event(AudioStart(rate=24000, width=2, channels=1).event())
                for at in range(0, len(sound), 2048):
                    await client.write_event(AudioChunk(rate=24000, width=2, channels=1, audio=sound[at:at + 2048]).event())
                await client.write_event(AudioStop().event())
                while not Transcript.is_type((event := await client.read_event()).type):
                    self.assertFalse(Error.is_type(event.type), event)
                heard = Transcript.from_event(event)
                self.assertEqual((words(heard.text), heard.language), (words(TEXT), "en"))
                self.assertTrue(TranscriptStop.is_type((await client.read_event()).type))

        self.run_with_client(say_and_hear)


if __name__ == "__main__":
    unittest.main()
