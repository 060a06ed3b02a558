"""`syrinx serve` asked by Wyoming's own package, as Home Assistant asks, and by clients that are none."""
import asyncio
import json
import re
import socket
import time
import unittest

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped, SynthesizeVoice

from program import cloning_qwen
from server import LONG
from wyoming_server import Wyoming

TEXT = "Hello there. This is a confidential test."


class Speech(Wyoming):
    def setUp(self):
        super().setUp()
        self.start_wyoming("--speech-slots", "2")

    def test_describe(self):
        async def describe(client):
            await client.write_event(Describe().event())
            info = Info.from_event(await client.read_event())
            await client.write_event(Ping(text="still there?").event())
            pong = Pong.from_event(await client.read_event())
            return info, pong

        info, pong = self.run_with_client(describe)
        self.assertEqual(pong.text, "still there?")
        self.assertEqual(self.metric('syrinx_requests_total{route="wyoming describe",code="200"}'), 1)
        (program,) = info.tts
        self.check_artifact(program, "syrinx", "Real-time speech", "Syrinx", "")
        self.assertTrue(program.supports_synthesize_streaming)
        self.assertEqual([(voice.name, voice.languages, voice.speakers) for voice in program.voices],
                         [("ann", ["en"], None), ("bob", ["en"], None)])
        for voice in program.voices:
            self.check_artifact(voice, voice.name, f"{voice.name} (english)", "Kyutai", "https://huggingface.co/kyutai/pocket-tts")
        self.assertEqual((info.asr, info.handle, info.intent, info.wake, info.mic, info.snd, info.satellite), ([],) * 6 + (None,))

    def test_what_is_heard_is_what_http_gives(self):
        expected = {voice: self.spoken(TEXT, voice=voice) for voice in ("ann", "bob")}

        async def speak(client):
            sounds = []
            for voice in (None, SynthesizeVoice(name="bob"), SynthesizeVoice(language="en_GB"), SynthesizeVoice(language="en")):
                await client.write_event(Synthesize(text=TEXT, voice=voice).event())
                sounds.append(await self.hear(client, AudioStop))
            await asyncio.to_thread(self.wait_for,
                                    lambda: self.metric('syrinx_requests_total{route="wyoming synthesize",code="200"}') == 4)
            return sounds

        default, bob, *others = self.run_with_client(speak)
        self.check_same(default, expected["ann"])
        self.check_same(bob, expected["bob"])
        for sound in others:
            self.check_same(sound, expected["ann"])
        self.check_log_without("speech", "confidential", route="wyoming synthesize")

    def test_text_in_parts(self):
        """Its first sentence is heard before the second is written; what is not for a server of parts is passed over."""
        alone = self.spoken("Hello there.")

        async def speak(client):
            await client.write_event(SynthesizeStart(voice=SynthesizeVoice(name="ann")).event())
            for part in ("Hello ", "there. ", "This "):
                await client.write_event(SynthesizeChunk(text=part).event())
            await client.write_event(Ping().event())
            sound, ponged = b"", False
            while len(sound) < len(alone) or not ponged:
                event = await client.read_event()
                self.assertIsNotNone(event)
                ponged = ponged or Pong.is_type(event.type)
                if AudioChunk.is_type(event.type):
                    sound += event.payload
            await client.write_event(SynthesizeChunk(text="is a confidential test.").event())
            await client.write_event(Synthesize(text=TEXT).event())
            await client.write_event(SynthesizeStop().event())
            rest = b""
            while not SynthesizeStopped.is_type((event := await client.read_event()).type):
                rest += event.payload or b""
            await client.write_event(Describe().event())
            self.assertTrue(Info.is_type((await client.read_event()).type))
            return sound, rest

        sound, rest = self.run_with_client(speak)
        self.check_same(sound[:len(alone)], alone)
        self.assertGreater(len(rest), 3840)
        self.wait_until_free()
        self.check_log_without("speech", "confidential", route="wyoming synthesize")

    def test_sentence_is_heard_while_its_text_arrives(self):
        self.end_server()
        model = cloning_qwen(self.folder / "base")
        self.start_wyoming(model=["--speech-model", model, "--recognition-model", "", "--voice", "ann"])

        async def speak(client):
            await client.write_event(SynthesizeStart().event())
            await client.write_event(SynthesizeChunk(text="The river had risen overnight and nobody ").event())
            while not AudioChunk.is_type((await client.read_event()).type):
                pass
            await client.write_event(SynthesizeChunk(text="in the town knew why.").event())
            await client.write_event(SynthesizeStop().event())
            while not SynthesizeStopped.is_type((await client.read_event()).type):
                pass

        self.run_with_client(speak)

    def test_refusals(self):
        for event, code, words in [
                (Synthesize(text="x", voice=SynthesizeVoice(name="nobody")), "voice_not_found", "no voice 'nobody'"),
                (Synthesize(text="x", voice=SynthesizeVoice(language="tlh")), "voice_not_found", "no voice speaks 'tlh'"),
                (Synthesize(text=""), "bad_event", "missing or empty"),
                (Synthesize(text="x" * 200001), "invalid_request_error", "more than 200000 characters"),
                (Synthesize(text="<speak/>", text_format="ssml"), "bad_event", "'text_format'"),
                (SynthesizeChunk(text="x"), "bad_event", "without 'synthesize-start'"),
                (SynthesizeStop(), "bad_event", "without 'synthesize-start'")]:
            text, got = self.run_with_client(lambda client, event=event: self.refused(client, event))
            self.assertEqual(got, code, text)
            self.assertIn(words, text)

        async def start_twice(client):
            await client.write_event(SynthesizeStart().event())
            return await self.refused(client, SynthesizeStart())

        self.assertIn("synthesize-stop", self.run_with_client(start_twice)[0])

        async def refused_behind_sound(client):
            await client.write_event(SynthesizeStart().event())
            await client.write_event(SynthesizeChunk(text="Hello there. This ").event())
            while not AudioChunk.is_type((await client.read_event()).type):
                pass
            await client.write_event(SynthesizeStart().event())
            while await client.read_event():
                pass

        self.run_with_client(refused_behind_sound)
        self.wait_for(lambda: any(line["status"] == 400 and line["bytes"] > 3840 for line in self.logged("request")))
        self.wait_until_free()

    def test_a_text_in_parts_that_is_too_long(self):
        """What came before the limit is heard, and then the error."""
        alone = self.spoken("Hello there.")
        for first, expected in (("Hello there. ", alone), ("", b"")):
            answer = self.raw(b"".join(map(self.line, (SynthesizeStart(), SynthesizeChunk(text=first),
                                                       SynthesizeChunk(text="x" * 200001), SynthesizeStop()))))
            *sound, error = self.events(answer)
            self.assertEqual(error[0], "error")
            self.assertIn("more than 200000 characters", error[1]["text"])
            self.check_same(b"".join(payload for _, _, payload in sound), expected)
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="wyoming synthesize",code="413"}') == 2)

    def test_a_text_without_a_word_is_silence(self):
        async def speak(client):
            sounds = []
            for text in ("...", "\U0001F600", TEXT):
                await client.write_event(Synthesize(text=text, voice=SynthesizeVoice(name="ann")).event())
                sounds.append(await self.hear(client, AudioStop))
            return sounds

        dots, picture, words = self.run_with_client(speak)
        self.check_same(dots, bytes(4800))
        self.check_same(picture, bytes(4800))
        self.check_same(words, self.spoken(TEXT))

    def test_a_text_in_parts_without_a_word(self):
        async def say_nothing(client):
            for text in ("\U0001F600", ""):
                await client.write_event(SynthesizeStart().event())
                await client.write_event(SynthesizeChunk(text=text).event())
                await client.write_event(SynthesizeStop().event())
                self.assertTrue(SynthesizeStopped.is_type((await client.read_event()).type))
            await asyncio.to_thread(self.wait_for,
                                    lambda: self.metric('syrinx_requests_total{route="wyoming synthesize",code="200"}') == 2)

        self.run_with_client(say_nothing)

    def test_slots_are_shared_with_http(self):
        async def occupy(client):
            await client.write_event(SynthesizeStart().event())
            async with self.client() as other:
                await other.write_event(SynthesizeStart().event())
                await asyncio.to_thread(self.wait_for, lambda: self.free_slots() == 0)
                async with self.client() as third:
                    return await self.refused(third, Synthesize(text="x"))

        text, code = self.run_with_client(occupy)
        self.assertEqual(code, "no_free_slot", text)
        self.wait_until_free()  # both have left

    def test_a_client_that_vanishes_frees_its_slot(self):
        async def vanish(client):
            await client.write_event(Synthesize(text=LONG).event())
            while not AudioChunk.is_type((await client.read_event()).type):
                pass

        for _ in range(3):
            self.run_with_client(vanish)
            self.wait_until_free()  # or the third might be refused
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="wyoming synthesize",code="499"}') == 3)
        with socket.create_connection(("127.0.0.1", self.wyoming_port)) as connection:
            connection.sendall(b'{"type": "synthesize-start"}\n{"type": "synth')
        self.wait_until_free()

    def test_garbage(self):
        """One error each, the connection is closed, and the server goes on."""
        for sent, words in [(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not valid JSON"),
                            (b"\x00\xff\xfe\n", "not valid JSON"),
                            (b"[]\n", "not a JSON object"),
                            (b'{"type": 1}\n', "'type'"),
                            (b'{"type": "x", "data_length": 100000000000}\n', "'data_length' is 100000000000"),
                            (b'{"type": "x", "payload_length": -5}\n', "'payload_length'"),
                            (b'{"type": "x", "data_length": 3}\n[1]', "not a JSON object"),
                            (b'{"type": "x", "data": ' + b"[" * 5000, "more than"),
                            (b"x" * 300000, "more than 262144 bytes")]:
            if b"\n" not in sent:
                sent += b"x" * 262144
            answer = self.raw(sent)
            line, _, data = answer.partition(b"\n")
            self.assertEqual(json.loads(line)["type"], "error")
            self.assertIn(words, json.loads(data)["text"], sent[:60])
        self.assertEqual(self.raw(b'{"type": "unheard-of"}\n{"type": "pong"}\n', ends=True), b"")
        self.assertEqual(self.raw(self.line(Ping(text="x")), ends=True).partition(b"\n")[2], b'{"text":"x"}')
        self.assertEqual(self.request("GET", "/health")[0], 200)

    def test_many_events_at_once_have_their_turns(self):
        """More than are taken at a time, and more than may wait to be sent: all are answered, in their order."""
        pings = b"".join(self.line(Ping(text=f"{i:04}" + "x" * 100)) for i in range(3000))
        answers = self.raw(pings, ends=True)
        self.assertEqual([int(text) for text in re.findall(rb'"text":"(\d{4})x{100}"', answers)], list(range(3000)))

    def test_one_that_asks_and_does_not_read_is_not_listened_to(self):
        """What the server has to say to it is bounded, so that it can ask only for so much."""
        before = self.metric("process_resident_memory_bytes")
        for asked in (Describe(), Ping(text="x" * 60000)):
            with socket.create_connection(("127.0.0.1", self.wyoming_port), timeout=0.5) as connection:
                events = self.line(asked) * (2 ** 20 // len(self.line(asked)))
                with self.assertRaises(TimeoutError):
                    for _ in range(64):
                        connection.sendall(events)
                self.assertEqual(self.request("GET", "/health")[0], 200)
                self.assertLess(self.metric("process_resident_memory_bytes") - before, 32 << 20)
                connection.settimeout(120)
                self.assertTrue(connection.recv(1))


class Limits(Wyoming):
    def test_who_says_nothing_is_left(self):
        self.start_wyoming("--idle-timeout-s", "6")
        self.assertEqual(self.raw(b""), b"")
        self.assertIn(b"text_timeout", self.raw(b'{"type": "synthesize-start"}\n'))  # its text does not come
        self.wait_until_free()

    def keep_open(self, part):
        """What comes of a text of which such parts keep coming, and nothing of an end."""
        answer = self.keep_saying(b'{"type": "synthesize-start"}\n', part)
        self.wait_until_free()
        return answer

    def test_a_slot_is_not_held_without_text(self):
        """Neither by events that bring none of it, nor by a text that never ends."""
        self.start_wyoming("--idle-timeout-s", "6")
        for part in (self.line(Ping()), self.line(SynthesizeChunk(text="")), self.line(Synthesize(text="x"))):
            self.assertIn(b"text_timeout", self.keep_open(part))
        self.end_server()
        self.start_wyoming("--text-timeout-s", "1")
        self.assertIn(b"text_timeout", self.keep_open(self.line(SynthesizeChunk(text="a"))))
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="wyoming synthesize",code="408"}') == 1)

    def test_who_listens_is_not_late(self):
        """One who hears for longer than the idle time, which is longer than a machine stands still, before the text goes on."""
        self.start_wyoming("--idle-timeout-s", "5")
        with self.connect(receive_bytes=4096, port=self.wyoming_port) as connection:
            connection.sendall(b'{"type": "synthesize-start"}\n' + self.line(SynthesizeChunk(text=LONG)))
            answer = b""
            for _ in range(10):
                time.sleep(0.7)
                answer += connection.recv(4096)
            connection.sendall(b'{"type": "synthesize-stop"}\n')
            while b"synthesize-stopped" not in answer[-4096:]:
                part = connection.recv(65536)
                self.assertTrue(part, answer[-400:])
                answer += part

    def test_connections_are_shared_with_http(self):
        self.start_wyoming("--max-connections-per-address", "3")
        # Each is there once it has been answered.
        ping, health = self.line(Ping(text="x")), b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        open_ones = []
        try:
            for port, asked in ((self.wyoming_port, ping), (self.wyoming_port, ping), (self.port, health)):
                open_ones.append(self.connect(port=port))
                open_ones[-1].sendall(asked)
                self.assertTrue(open_ones[-1].recv(65536))
            self.assertIn(b"from your address: 'max_connections_per_address' is 3; ", self.raw(b""))
            with self.connect() as connection:
                self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 503 "))
            open_ones[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            page = b"".join(iter(lambda: open_ones[-1].recv(65536), b""))
            self.assertIn(b'\nsyrinx_rejected_total{reason="connections"} 2\n', page)
        finally:
            for connection in open_ones:
                connection.close()

    def test_one_that_does_not_read_is_cut(self):
        self.start_wyoming("--stalled-reader-s", "0.5")
        with self.connect(receive_bytes=4096, port=self.wyoming_port) as connection:
            connection.sendall(json.dumps({"type": "synthesize", "data": {"text": LONG}}).encode() + b"\n")
            self.wait_for(lambda: self.metric('syrinx_requests_total{route="wyoming synthesize",code="499"}') == 1)
            self.wait_until_free()

    def test_what_is_spoken_ends_behind_sigterm(self):
        self.start_wyoming("--drain-timeout-s", "600")
        expected = self.spoken(TEXT * 4)

        async def speak(client):
            async with self.client() as idle:
                await idle.write_event(Ping().event())  # so that it has come in
                await idle.read_event()
                await client.write_event(Synthesize(text=TEXT * 4).event())
                while not AudioStart.is_type((await client.read_event()).type):
                    pass
                self.server.terminate()
                self.assertIsNone(await idle.read_event())
                sound = b""
                while not AudioStop.is_type((event := await client.read_event()).type):
                    sound += event.payload
                self.assertIsNone(await client.read_event())
                return sound

        self.check_same(self.run_with_client(speak), expected)
        self.end_server(terminate=False)

    def test_it_is_for_this_machine_unless_said_otherwise(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        for arguments in [("--host", "0.0.0.0", "--api-key-file", keys)]:
            self.check_fails(2, "'wyoming_port' has no keys", "serve", "--check", "--wyoming-port", "10200",
                             "--speech-model", "none", *arguments)


if __name__ == "__main__":
    unittest.main()
