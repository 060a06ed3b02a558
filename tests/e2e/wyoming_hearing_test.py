"""`syrinx serve` hears what Wyoming's own package says, as Home Assistant does, and what is no way to say it."""
import asyncio
import json
import unittest

from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.info import Describe, Info
from wyoming.ping import Ping
from wyoming.tts import Synthesize, SynthesizeStart

from program import DATA, noise, tiny_whisper, tone, wav
from server import MODEL
from wyoming_server import Wyoming

TRANSDUCER = DATA / "transducer/hybrid_streaming.nemo"


class Hearing(Wyoming):
    """With a small random checkpoint of Whisper, whose words make no sense, but are the same for the same sound."""

    def start_hearing(self, *arguments):
        self.whisper = tiny_whisper(self.folder / "tiny")
        self.start_wyoming("--recognition-model", self.whisper, "--recognition-slots", "2", *arguments)

    def start_server(self, *arguments):
        super().start_server(*arguments, model=MODEL[2:])

    def transcribed(self, recording, model=None):
        """By `syrinx transcribe`, greedily."""
        path = self.folder / "said.wav"
        path.write_bytes(recording)
        status, output, errors = self.run_it("transcribe", path, "--model", model or self.whisper, "--beam", "1", "--format", "json")
        self.assertEqual(status, 0, errors)
        return " ".join(segment["text"] for segment in json.loads(output)["segments"] if segment["text"])

    async def say(self, client, sound, rate=16000, width=2, channels=1, chunk=4096, start=True):
        if start:
            await client.write_event(AudioStart(rate=rate, width=width, channels=channels).event())
        chunk -= chunk % (width * channels)
        for at in range(0, len(sound), chunk):
            await client.write_event(AudioChunk(rate=rate, width=width, channels=channels, audio=sound[at:at + chunk]).event())
        await client.write_event(AudioStop().event())

    async def words(self, client, text=None):
        """The transcript, whose parts must be it, `text` those that have been read already."""
        if text is None:
            event = await client.read_event()
            self.assertTrue(TranscriptStart.is_type(event.type), event)
            text = ""
        while TranscriptChunk.is_type((event := await client.read_event()).type):
            text += TranscriptChunk.from_event(event).text
        self.assertTrue(Transcript.is_type(event.type), event)
        transcript = Transcript.from_event(event)
        self.assertEqual(transcript.text, text)
        self.assertTrue(TranscriptStop.is_type((await client.read_event()).type))
        return transcript

    def test_describe(self):
        self.start_hearing()

        async def describe(client):
            await client.write_event(Describe().event())
            return Info.from_event(await client.read_event())

        info = self.run_with_client(describe)
        (program,) = info.asr
        self.check_artifact(program, "syrinx", "Real-time recognition", "Syrinx", "")
        self.assertEqual((program.supports_transcript_streaming, program.requires_external_vad), (False, True))
        (model,) = program.models
        self.check_artifact(model, "tiny", "tiny", "OpenAI", "https://github.com/openai/whisper")
        self.assertEqual(model.languages, ["en", "zh", "de", "fr", "ja"])  # of its small vocabulary
        (speaking,) = info.tts
        self.assertEqual(speaking.description, "Real-time speech")

    def test_words_are_those_of_a_recording(self):
        """Of any format, with and without what may be left out, one sound after the other on one connection."""
        self.start_hearing()
        mono = tone(2.3)
        sounds = [(mono, {}), (tone(1.1, rate=44100, channels=2), {"rate": 44100, "channels": 2}),
                  (bytes((i * i) % 251 for i in range(20000)), {"width": 1, "rate": 8000}),
                  (bytes((i * i) % 251 for i in range(48000)), {"width": 3}),
                  (bytes((i * 7) % 251 for i in range(64000)), {"width": 4, "channels": 2, "rate": 48000})]
        expected = [self.transcribed(wav(sound, format.get("rate", 16000), format.get("channels", 1), bits=8 * format.get("width", 2)))
                    for sound, format in sounds]
        self.assertGreater(len(set(expected)), 1, expected)

        async def speak(client):
            heard = []
            for sound, format in sounds:
                await self.say(client, sound, **format)
                heard.append((await self.words(client)).text)
            self.assertEqual(heard, expected)
            await client.write_event(Transcribe(name="tiny", language="de-DE").event())
            await self.say(client, mono, start=False)
            self.assertEqual((await self.words(client)).language, "de")
            await self.say(client, b"")
            self.assertEqual((await self.words(client)).text, "")

        self.run_with_client(speak)
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="wyoming transcribe",code="200"}') == 7)
        self.assertEqual(self.free_slots("recognition"), 2)
        self.assertNotIn(expected[0], "".join(self.lines))

    def test_refusals(self):
        self.start_hearing("--max-utterance-s", "1")
        start = AudioStart(rate=16000, width=2, channels=1)
        second = AudioChunk(rate=16000, width=2, channels=1, audio=bytes(32000))
        for events, code, words in [
                ([Transcribe(name="nobody")], "model_not_found", "no model 'nobody'"),
                ([Transcribe(name="x" * 300)], "bad_event", "'name'"),
                ([Transcribe(language="tlh")], "language_not_found", "'tlh'"),
                ([AudioStart(rate=16000, width=5, channels=1)], "bad_event", "'width'"),
                ([AudioStart(rate=1, width=2, channels=1)], "bad_event", "'rate'"),
                ([AudioStart(rate=16000, width=2, channels=9)], "bad_event", "'channels'"),
                ([AudioStart(rate="x", width=2, channels=1)], "bad_event", "'rate'"),
                ([AudioStop()], "bad_event", "without any sound"),
                ([start, start], "bad_event", "before the last sound's 'audio-stop'"),
                ([start, Transcribe()], "bad_event", "before the last sound's 'audio-stop'"),
                ([start, Synthesize(text="x")], "bad_event", "before the sound's 'audio-stop'"),
                ([SynthesizeStart(), start], "bad_event", "before the text's 'synthesize-stop'"),
                ([start, AudioChunk(rate=8000, width=2, channels=1, audio=b"ab")], "bad_event", "another rate"),
                ([start, AudioChunk(rate=16000, width=2, channels=1, audio=b"abc")], "bad_event", "3 bytes"),
                ([start, second, second], "invalid_request_error", "longer than 1 s")]:
            async def ask(client, events=events):
                for event in events[:-1]:
                    await client.write_event(event.event())
                return await self.refused(client, events[-1])

            text, got = self.run_with_client(ask)
            self.assertEqual(got, code, text)
            self.assertIn(words, text)
            self.wait_for(lambda: self.free_slots("recognition") == 2)

    def test_slots_are_shared_and_come_back(self):
        """None is free while two are spoken into; who leaves in the middle gives one back."""
        self.start_hearing()
        start = AudioStart(rate=16000, width=2, channels=1)

        async def occupy(client):
            await client.write_event(start.event())
            async with self.client() as other:
                await other.write_event(start.event())
                await asyncio.to_thread(self.wait_for, lambda: self.free_slots("recognition") == 0)
                async with self.client() as third:
                    refused = await self.refused(third, start)
            await asyncio.to_thread(self.wait_for, lambda: self.free_slots("recognition") == 1)
            async with self.client() as third:
                await self.say(third, tone(1))
                await self.words(third)
            return refused

        self.assertEqual(self.run_with_client(occupy)[1], "no_free_slot")
        self.wait_for(lambda: self.free_slots("recognition") == 2)
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="wyoming transcribe",code="499"}') == 2)

        async def leave(client):
            await client.write_event(AudioStart(rate=16000, width=2, channels=1).event())
            await self.say(client, tone(20), start=False)

        for _ in range(3):
            self.run_with_client(leave)
            self.wait_for(lambda: self.free_slots("recognition") == 2)  # or the third would be refused

    def test_two_speak_at_once(self):
        self.start_hearing()
        sounds = [tone(1.5), tone(2.5, rate=22050)]
        rates = [16000, 22050]
        expected = [self.transcribed(wav(sound, rate)) for sound, rate in zip(sounds, rates)]

        async def speak(sound, rate):
            async with self.client() as client:
                await self.say(client, sound, rate=rate, chunk=1024)
                return (await self.words(client)).text

        async def both():
            return await asyncio.gather(*(speak(*each) for each in zip(sounds, rates)))

        self.assertEqual(asyncio.run(both()), expected)

    def test_who_says_no_more_is_late(self):
        self.start_hearing("--idle-timeout-s", "6")
        start = self.line(AudioStart(rate=16000, width=2, channels=1))
        self.assertIn(b"sound_timeout", self.raw(start))
        self.assertIn(b"sound_timeout", self.raw(start + self.line(Ping()) * 3))
        self.end_server()
        self.start_wyoming("--recognition-model", self.whisper, "--text-timeout-s", "1")
        more = b'{"type": "audio-chunk", "payload_length": 2}\nab'
        self.assertIn(b"sound_timeout", self.keep_saying(start, more))
        self.wait_for(lambda: self.free_slots("recognition") == 4)

    def test_what_is_said_is_heard_behind_sigterm(self):
        self.start_hearing("--drain-timeout-s", "600")
        expected = self.transcribed(wav(tone(2)))

        async def speak(client):
            await client.write_event(AudioStart(rate=16000, width=2, channels=1).event())
            await asyncio.to_thread(self.wait_for, lambda: self.free_slots("recognition") == 1)
            self.server.terminate()
            await self.say(client, tone(2), start=False)
            self.assertEqual((await self.words(client)).text, expected)
            self.assertIsNone(await client.read_event())

        self.run_with_client(speak)
        self.end_server(terminate=False)

    def test_nothing_hears_where_no_model_does(self):
        self.start_wyoming("--recognition-model", "")
        for event in (Transcribe(), AudioStart(rate=16000, width=2, channels=1)):
            text, code = self.run_with_client(lambda client, event=event: self.refused(client, event))
            self.assertEqual(code, "model_not_found")
            self.assertIn("recognition_model", text)

    def start_streaming(self, *arguments):
        self.start_wyoming("--recognition-model", TRANSDUCER, "--recognition-slots", "2", *arguments)

    def test_words_come_while_somebody_speaks(self):
        """Of a model that hears streams as it hears recordings."""
        self.start_streaming()
        sound = noise(48000)
        expected = self.transcribed(wav(sound), TRANSDUCER)
        self.assertGreater(len(expected.split()), 10)
        layout = {"rate": 16000, "width": 2, "channels": 1}

        async def speak(client):
            await client.write_event(Describe().event())
            (program,) = Info.from_event(await client.read_event()).asr
            self.assertTrue(program.supports_transcript_streaming)
            await client.write_event(AudioChunk(audio=sound[:64000], **layout).event())
            self.assertTrue(TranscriptStart.is_type((await client.read_event()).type))
            begun = TranscriptChunk.from_event(await client.read_event()).text
            self.assertTrue(expected.startswith(begun), begun)
            self.assertEqual(self.free_slots("recognition"), 1)
            await client.write_event(AudioChunk(audio=sound[64000:], **layout).event())
            await client.write_event(AudioStop().event())
            self.assertEqual((await self.words(client, begun)).text, expected)
            for chunk in (22, 1000, len(sound)):  # the next sounds on the same connection, in any parts
                await self.say(client, sound, chunk=chunk)
                self.assertEqual((await self.words(client)).text, expected)

        self.run_with_client(speak)
        self.wait_for(lambda: self.free_slots("recognition") == 2)
        self.assertEqual(self.metric('syrinx_audio_seconds_total{model="hybrid_streaming",direction="in"}'), 12)
        self.assertEqual(self.metric('syrinx_time_to_first_word_seconds_count{model="hybrid_streaming"}'), 4)
        self.assertEqual(self.metric('syrinx_audio_backlog_seconds{model="hybrid_streaming"}'), 0)

    def test_a_streams_words_are_those_of_a_recording(self):
        """Of any format."""
        self.start_streaming()
        sounds = [(bytes((i * i) % 251 for i in range(20000)), {"width": 1, "rate": 8000}),
                  (noise(60000), {"rate": 44100, "channels": 2}),
                  (bytes((i * i) % 251 for i in range(48000)), {"width": 3}),
                  (bytes((i * 7) % 251 for i in range(640000)), {"width": 4, "channels": 8, "rate": 384000}),
                  (b"", {})]
        expected = [self.transcribed(wav(sound, format.get("rate", 16000), format.get("channels", 1), bits=8 * format.get("width", 2)),
                                     TRANSDUCER) if sound else "" for sound, format in sounds]
        self.assertGreater(len(set(expected)), 3, expected)

        async def speak(client):
            for (sound, format), words in zip(sounds, expected):
                await self.say(client, sound, **format)
                self.assertEqual((await self.words(client)).text, words)

        self.run_with_client(speak)

    def test_who_leaves_amid_a_stream_gives_its_slot_back(self):
        self.start_streaming()
        layout = {"rate": 16000, "width": 2, "channels": 1}

        async def leave(client):
            await client.write_event(AudioChunk(audio=noise(48000), **layout).event())
            while not TranscriptChunk.is_type((await client.read_event()).type):
                pass
            self.assertEqual(self.free_slots("recognition"), 1)

        for _ in range(3):
            self.run_with_client(leave)
            self.wait_for(lambda: self.free_slots("recognition") == 2)  # or the third would be refused
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="wyoming transcribe",code="499"}') == 3)
        self.assertEqual(self.metric('syrinx_audio_backlog_seconds{model="hybrid_streaming"}'), 0)

    def test_a_language_that_a_stream_cannot_be_told_is_refused_at_once(self):
        self.start_streaming()

        async def ask(client):
            await client.write_event(Transcribe(language="en").event())
            return await self.refused(client, AudioStart(rate=16000, width=2, channels=1))

        self.assertIn("leave the language out", self.run_with_client(ask)[0])
        self.wait_for(lambda: self.free_slots("recognition") == 2)


if __name__ == "__main__":
    unittest.main()
