"""/v1/realtime asked by clients of others, unmodified: OpenAI's Python package and websockets."""
import array
import base64
import contextlib
import json
import random
import re
import time
import unittest

import openai
import websockets
from websockets.sync.client import connect

from program import DATA
from server import LONG, Server, form

HANDSHAKE = (b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
NO_ITEM = "item_retrieve_invalid_item_id"
SPOKEN = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello there."}]}


def heard_by(connection, on_sound=lambda: None):
    """Of OpenAI's client: sound and words up to the end of the response, and this."""
    sound, words = b"", ""
    for event in connection:
        if event.type == "response.output_audio.delta":
            sound += base64.b64decode(event.delta)
            on_sound()
        elif event.type == "response.output_audio_transcript.delta":
            words += event.delta
        elif event.type == "response.done":
            return sound, words, event.response
    raise AssertionError("the session has ended")


class Realtime(Server):
    def realtime(self, query="?model=gpt-realtime", **options):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return connect(f"ws://{host}:{self.port}/v1/realtime{query}", compression=None, max_size=None, open_timeout=120,
                       ping_interval=None, **options)

    @contextlib.contextmanager
    def session(self, *arguments, created="session.created", **options):
        with self.realtime(*arguments, close_timeout=2, **options) as client:
            self.assertEqual(self.hear(client)["type"], created)
            yield client

    def sessions(self, headers=()):
        page = self.request("GET", "/metrics", headers=headers)[2].decode()
        return int(re.search(r"^syrinx_realtime_sessions (\d+)", page, re.M)[1])

    def say(self, client, kind, **fields):
        client.send(json.dumps({"type": kind, **fields}))

    def hear(self, client, timeout=120):
        return json.loads(client.recv(timeout=timeout))

    def hear_until(self, client, kind):
        events = [self.hear(client)]
        while events[-1]["type"] != kind:
            events.append(self.hear(client))
        return events

    def ask_for(self, client, text, **response):
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        self.say(client, "response.create", response={"input": [item], **response})

    def sound_of(self, events, kind="response.output_audio.delta"):
        return b"".join(base64.b64decode(event["delta"], validate=True) for event in events if event["type"] == kind)

    def closed_with(self, client):
        with self.assertRaises(websockets.exceptions.ConnectionClosed) as caught:
            while True:
                client.recv(timeout=120)
        return caught.exception.rcvd.code if caught.exception.rcvd else None

    def check_error(self, client, code, param, kind, **fields):
        self.say(client, kind, event_id="mine", **fields)
        event = self.hear_until(client, "error")[-1]
        self.assertEqual(event["error"]["event_id"], "mine", event)
        self.assertEqual((event["error"]["code"], event["error"]["param"]), (code, param), event)
        return event["error"]["message"]


class Speech(Realtime):
    def test_what_is_written_is_spoken(self):
        self.start_server()
        with self.session() as client:
            self.say(client, "conversation.item.create", item=SPOKEN)
            added, done = self.hear(client), self.hear(client)
            self.assertEqual((added["type"], done["type"]), ("conversation.item.added", "conversation.item.done"))
            self.assertIsNone(added["previous_item_id"])
            self.say(client, "response.create")
            events = self.hear_until(client, "response.done")
            kinds = [event["type"] for event in events]
            order = ["response.created", "response.output_item.added", "conversation.item.added",
                     "response.content_part.added", "response.output_audio_transcript.delta", "response.output_audio.delta",
                     "response.output_audio.done", "response.output_audio_transcript.done", "response.content_part.done",
                     "response.output_item.done", "conversation.item.done", "response.done"]
            self.assertEqual(list(dict.fromkeys(kinds)), order)
            self.assertEqual(len({event["event_id"] for event in events}), len(events))
            self.check_same(self.sound_of(events), self.spoken())
            response = events[-1]["response"]
            self.assertEqual((response["status"], response["output"][0]["content"]),
                             ("completed", [{"type": "output_audio", "transcript": "Hello there."}]))
            self.assertEqual(response["usage"]["input_tokens"], len("Hello there."))
            self.assertEqual(events[2]["previous_item_id"], added["item"]["id"])
            # What has been answered is not spoken again.
            self.check_error(client, None, "response", "response.create")
            self.ask_for(client, "Confidential words.")
            self.hear_until(client, "response.done")
        self.wait_for(lambda: self.logged("response"))
        self.assertEqual(self.logged("response")[0]["stopped"], "eos")
        self.wait_for(lambda: [line for line in self.logged("request") if line["route"] == "/v1/realtime"])
        self.assertEqual([line["status"] for line in self.logged("request") if line["route"] == "/v1/realtime"], [101])
        self.assertEqual(self.metric('syrinx_requests_total{route="/v1/realtime",code="101"}'), 1)
        self.wait_for(lambda: self.sessions() == 0)
        self.check_log_without("response", "Confidential words.", route="/v1/realtime")

    def test_beta_names(self):
        self.start_server()
        with self.session(additional_headers={"OpenAI-Beta": "realtime=v1"}) as client:
            self.say(client, "session.update", session={"modalities": ["text", "audio"], "voice": "bob",
                                                        "output_audio_format": "pcm16"})
            session = self.hear(client)["session"]
            self.assertEqual((session["voice"], session["output_audio_format"]), ("bob", "pcm16"))
            self.say(client, "conversation.item.create", item=SPOKEN)
            self.assertEqual(self.hear(client)["type"], "conversation.item.created")
            self.say(client, "response.create")
            events = self.hear_until(client, "response.done")
            kinds = {event["type"] for event in events}
            self.assertLessEqual({"response.audio.delta", "response.audio.done", "response.audio_transcript.delta",
                                  "response.audio_transcript.done"}, kinds)
            self.assertFalse([kind for kind in kinds if "output_audio" in kind or kind.startswith("conversation.item.d")])
            self.check_same(self.sound_of(events, "response.audio.delta"), self.spoken(voice="bob"))
            self.assertEqual(events[-1]["response"]["output"][0]["content"][0]["type"], "audio")
        self.end_server()
        self.start_server("--realtime-dialect", "released")
        with self.session(additional_headers={"OpenAI-Beta": "realtime=v1"}) as client:
            self.ask_for(client, "Hello.", output_modalities=["text"])
            self.assertEqual(self.hear_until(client, "response.output_text.done")[-1]["text"], "Hello.")

    def test_an_uploaded_voice_speaks_in_a_session_that_was_open_before(self):
        self.start_server()
        name = {"session": {"audio": {"output": {"voice": "me"}}}}
        with self.session() as client:
            self.check_error(client, "voice_not_found", "audio.output.voice", "session.update", **name)
            body = form((DATA / "pocket_tts/voice.wav").read_bytes(), name="me")
            status, _, told = self.request("POST", "/v1/audio/voices", body, {"Content-Type": "multipart/form-data; boundary=b"})
            self.assertEqual(status, 200, told)
            self.say(client, "session.update", **name)
            self.assertEqual(self.hear(client)["session"]["audio"]["output"]["voice"], "me")
            self.ask_for(client, "Hello there.")
            self.check_same(self.sound_of(self.hear_until(client, "response.done")), self.spoken(voice="bob"))
            self.assertEqual(self.request("DELETE", "/v1/audio/voices/me")[0], 200)
            self.ask_for(client, "Hello there.")
            self.assertEqual(self.hear_until(client, "error")[-1]["error"]["code"], "voice_not_found")

    def test_telephone_formats(self):
        self.start_server()
        whole = len(self.spoken()) // 2
        with self.session() as client:
            for kind in ("audio/pcmu", "audio/pcma"):
                self.ask_for(client, "Hello there.", audio={"output": {"format": {"type": kind}}})
                sound = self.sound_of(self.hear_until(client, "response.done"))
                self.assertEqual(len(sound), -(-whole // 3))
                self.assertGreater(len(set(sound)), 20)

    def test_cancel_and_truncate(self):
        self.start_server()
        with self.session() as client:
            message = self.check_error(client, "response_cancel_not_active", None, "response.cancel")
            self.assertEqual(message.partition(": ")[0], "Cancellation failed")  # which clients pass over
            self.ask_for(client, LONG)
            self.hear_until(client, "response.output_audio.delta")
            self.check_error(client, "conversation_already_has_active_response", None, "response.create")
            self.say(client, "response.cancel")
            done = self.hear_until(client, "response.done")
            response = done[-1]["response"]
            self.assertEqual((response["status"], response["status_details"]["reason"]), ("cancelled", "client_cancelled"))
            item = response["output"][0]
            self.assertEqual(item["status"], "incomplete")
            self.check_error(client, None, "audio_end_ms", "conversation.item.truncate", item_id=item["id"], content_index=0,
                             audio_end_ms=10 ** 9)
            self.say(client, "conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=80)
            self.assertEqual(self.hear(client)["audio_end_ms"], 80)
            self.say(client, "conversation.item.retrieve", item_id=item["id"])
            heard = self.hear(client)["item"]["content"][0]["transcript"]
            self.assertLess(len(heard), len(LONG))
            self.assertTrue(LONG.startswith(heard))
            self.say(client, "conversation.item.delete", item_id=item["id"])
            self.assertEqual(self.hear(client)["type"], "conversation.item.deleted")
            for kind in ("retrieve", "delete", "truncate"):
                self.check_error(client, f"item_{kind}_invalid_item_id", "item_id", f"conversation.item.{kind}",
                                 item_id=item["id"], content_index=0, audio_end_ms=0)
            self.ask_for(client, "Hello there.")
            self.check_same(self.sound_of(self.hear_until(client, "response.done")), self.spoken())

    def test_a_session_holds_a_slot_while_it_speaks(self):
        self.start_server("--speech-slots", "1")
        with self.session() as idle, self.session() as client:
            self.assertEqual((self.sessions(), self.free_slots()), (2, 1))
            self.ask_for(client, LONG)
            self.hear_until(client, "response.output_audio.delta")
            self.assertEqual(self.free_slots(), 0)
            self.ask_for(idle, "Hello there.")
            self.assertEqual(self.hear(idle)["error"]["code"], "no_free_slot")
            self.say(client, "response.cancel")
            self.hear_until(client, "response.done")
            self.wait_for(lambda: self.free_slots() == 1)
            self.ask_for(idle, "Hello there.")
            sound = self.sound_of(self.hear_until(idle, "response.done"))
            self.wait_for(lambda: self.free_slots() == 1)
            self.check_same(sound, self.spoken())

    def test_errors_name_the_field(self):
        self.start_server("--max-text-characters", "50")
        with self.session() as client:
            self.check_error(client, "invalid_event_type", "type", "session.delete")
            self.check_error(client, "voice_not_found", "audio.output.voice", "session.update",
                             session={"audio": {"output": {"voice": "nobody"}}})
            self.check_error(client, None, "audio.output.format", "session.update",
                             session={"audio": {"output": {"format": {"type": "audio/opus"}}}})
            self.check_error(client, None, "item.content", "conversation.item.create",
                             item={**SPOKEN, "content": [{"type": "input_text", "text": "x" * 51}]})
            self.check_error(client, "item_not_found", "previous_item_id", "conversation.item.create",
                             item=SPOKEN, previous_item_id="nobody")
            for text, code in (("{", "invalid_json"), ("[]", "invalid_json"), ("{}", "missing_required_parameter")):
                client.send(text)
                self.assertEqual(self.hear(client)["error"]["code"], code)
            client.send(b"bytes")
            self.assertIn("binary", self.hear(client)["error"]["message"])
            self.ask_for(client, "Speak faster.", audio={"output": {"speed": 9}})
            failed = self.hear(client)
            self.assertEqual((failed["type"], failed["error"]["param"]), ("error", "audio.output.speed"), failed)
            self.check_error(client, None, "audio.output.speed", "session.update", session={"audio": {"output": {"speed": 9}}})
            # Within its range it is ignored, as the model lacks it.
            self.say(client, "session.update", session={"audio": {"output": {"speed": 2}}})
            updated = self.hear_until(client, "session.updated")[-1]
            self.assertEqual(updated["session"]["ignored"], ["audio.output.speed"])


class Hearing(Realtime):
    """With a small random transducer: what it hears makes no sense, but is what the command line hears."""
    MODEL = DATA / "transducer/hybrid_streaming.nemo"

    def setUp(self):
        super().setUp()
        noise = random.Random(1)
        self.sound = array.array("h", (noise.randrange(-9000, 9000) for _ in range(24000 * 2))).tobytes()
        self.start_server("--recognition-slots", "1", "--max-clip-s", "10",
                          model=["--speech-model", "", "--recognition-model", self.MODEL])

    def transcribed(self):
        code, output, errors = self.run_it("transcribe", "--model", self.MODEL, "--raw", "s16", "--rate", "24000", "--stream",
                                           text=self.sound)
        self.assertEqual((code, errors), (0, ""))
        return " ".join(output.decode().split())

    def append(self, client, sound, step=4800):
        for at in range(0, len(sound), step):
            self.say(client, "input_audio_buffer.append", audio=base64.b64encode(sound[at:at + step]).decode())

    def test_what_is_committed_is_what_the_command_line_hears(self):
        expected = self.transcribed()
        self.assertGreater(len(expected), 20)
        for query, headers, update in (
                ("?model=gpt-realtime", {}, {"type": "session.update", "session": {
                    "type": "realtime", "audio": {"input": {"transcription": {"model": "whisper-1"}, "turn_detection": None}}}}),
                ("?intent=transcription", {}, {"type": "session.update", "session": {
                    "type": "transcription", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 24000},
                                                                 "turn_detection": None}}}}),
                ("?intent=transcription", {"OpenAI-Beta": "realtime=v1"}, {"type": "transcription_session.update", "session": {
                    "input_audio_format": "pcm16", "input_audio_transcription": {"model": "gpt-4o-transcribe"},
                    "turn_detection": None}})):
            created = "transcription_session.created" if headers else "session.created"
            with self.session(query, created=created, additional_headers=headers) as client:
                client.send(json.dumps(update))
                told = self.hear(client)
                self.assertEqual(told["type"], "transcription_session.updated" if headers else "session.updated", told)
                self.append(client, self.sound)
                self.say(client, "input_audio_buffer.commit")
                events = self.hear_until(client, "conversation.item.input_audio_transcription.completed")
                self.assertEqual(" ".join(events[-1]["transcript"].split()), expected)
                self.assertEqual("".join(event["delta"] for event in events if "delta" in event), events[-1]["transcript"])
                self.assertEqual(events[-1]["usage"], {"type": "duration", "seconds": 2.0})
                self.wait_for(lambda: self.free_slots("recognition") == 1)
        self.wait_for(lambda: len(self.logged("turn")) >= 3)
        self.assertEqual(len(self.logged("turn")), 3)
        self.check_log_without("turn", expected, route="/v1/realtime")
        self.assertNotIn(base64.b64encode(self.sound[:30]).decode(), "".join(self.lines))

    def test_one_append_is_a_whole_clip(self):
        expected = self.transcribed()
        self.end_server()
        self.start_server("--recognition-slots", "1", model=["--speech-model", "", "--recognition-model", self.MODEL])
        with self.session("?intent=transcription") as client:
            self.say(client, "session.update", session={"type": "transcription", "audio": {"input": {"turn_detection": None}}})
            self.assertEqual(self.hear(client)["type"], "session.updated")
            text = base64.b64encode(self.sound + bytes((16 << 20) - len(self.sound))).decode()  # 350 s
            self.say(client, "input_audio_buffer.append", audio=text)
            # So much again is refused by an event.
            self.check_error(client, "audio_backlog", "audio", "input_audio_buffer.append", audio=text)
            self.say(client, "input_audio_buffer.commit")
            events = self.hear_until(client, "conversation.item.input_audio_transcription.completed")
            self.assertEqual(events[-1]["usage"], {"type": "duration", "seconds": 349.525})
            self.wait_for(lambda: self.free_slots("recognition") == 1 and self.metric("syrinx_upload_bytes") == 0)
        with self.session("?intent=transcription") as client:
            self.say(client, "session.update", session={"type": "transcription", "audio": {"input": {"turn_detection": None}}})
            self.assertEqual(self.hear(client)["type"], "session.updated")
            text = base64.b64encode(self.sound).decode()
            for at in range(0, len(text), 20003):  # cut within groups of digits and within samples
                self.say(client, "input_audio_buffer.append", audio=text[at:at + 20003])
            self.say(client, "input_audio_buffer.commit")
            events = self.hear_until(client, "conversation.item.input_audio_transcription.completed")
            self.assertEqual(" ".join(events[-1]["transcript"].split()), expected)

    def test_long_messages_share_a_room(self):
        self.end_server()
        self.start_server("--max-upload-mb", "4", "--max-uploads-mb", "4",
                          model=["--speech-model", "", "--recognition-model", self.MODEL])

        def parts():
            yield '{"type":"conversation.item.delete","item_id":"' + "A" * (3 << 20)
            self.wait_for(lambda: self.metric("syrinx_upload_bytes") > 3 << 20)
            with self.session() as other, self.assertRaises(websockets.ConnectionClosed) as closed:
                self.say(other, "input_audio_buffer.append", audio="A" * (2 << 20))
                self.hear(other)
            self.assertEqual(closed.exception.rcvd.code, 1013)
            yield '"}'

        with self.session("?intent=transcription") as client:
            client.send(parts())
            self.assertEqual(self.hear_until(client, "error")[-1]["error"]["param"], "item_id")
            self.check_error(client, NO_ITEM, "item_id", "conversation.item.retrieve", item_id="none")
        self.wait_for(lambda: self.metric("syrinx_upload_bytes") == 0)

    def code_behind(self, client, sound):
        """Of the first error behind this sound; NO_ITEM: there was none, and all of it has been looked at."""
        self.append(client, sound)
        self.say(client, "conversation.item.retrieve", item_id="none")
        codes = []
        while NO_ITEM not in codes:
            codes.append(self.hear_until(client, "error")[-1]["error"]["code"])
        return codes[0]

    def is_refused_beside(self, client, other):
        """Whether there is no slot for `other`.  There may be one if the turn of `client` has stood still for long: it goes on in another."""
        for each in (client, other):
            self.say(each, "input_audio_buffer.clear")
            self.hear_until(each, "input_audio_buffer.cleared")
        self.wait_for(lambda: self.free_slots("recognition") == 1)
        self.assertEqual(self.code_behind(client, self.sound), NO_ITEM)
        return self.code_behind(other, self.sound[:9600]) == "no_free_slot"

    def test_who_sends_too_much_or_leaves_costs_nobody_anything(self):
        with self.session("?intent=transcription") as client:
            self.say(client, "session.update", session={"type": "transcription", "audio": {"input": {"turn_detection": None}}})
            self.assertEqual(self.hear(client)["type"], "session.updated")
            for audio, param in (("*", "audio"), ("A=", "audio"), (base64.b64encode(bytes(24000 * 2 * 11)).decode(), "audio")):
                self.check_error(client, "audio_backlog" if len(audio) > 9 else None, param, "input_audio_buffer.append",
                                 audio=audio)
            with self.session("?intent=transcription") as other:
                self.say(other, "session.update", session={"type": "transcription",
                                                           "audio": {"input": {"turn_detection": None}}})
                self.assertEqual(self.hear_until(other, "session.updated")[-1]["type"], "session.updated")
                self.assertEqual(self.code_behind(client, self.sound), NO_ITEM)
                self.wait_for(lambda: self.free_slots("recognition") == 1)  # a turn in which nothing comes for long gives its slot up
                self.wait_for(lambda: self.is_refused_beside(client, other))
        self.wait_for(lambda: (self.sessions(), self.free_slots("recognition")) == (0, 1))

    def test_the_server_goes_while_somebody_speaks(self):
        expected = self.transcribed()
        with self.session("?intent=transcription") as client:
            self.say(client, "session.update", session={"type": "transcription", "audio": {"input": {"turn_detection": None}}})
            self.assertEqual(self.hear(client)["type"], "session.updated")
            self.assertEqual(self.code_behind(client, self.sound), NO_ITEM)
            self.server.terminate()
            events = self.hear_until(client, "conversation.item.input_audio_transcription.completed")
            self.assertEqual(" ".join(events[-1]["transcript"].split()), expected)
            self.assertEqual(self.hear(client)["error"]["code"], "draining")
            self.assertEqual(self.closed_with(client), 1001)
        self.end_server(terminate=False)

    def test_detection_needs_its_model(self):
        with self.session("?intent=transcription") as client:
            self.assertIn("silero-vad", self.check_error(
                client, None, "audio.input.turn_detection", "session.update",
                session={"audio": {"input": {"turn_detection": {"type": "server_vad"}}}}))
            self.check_error(client, "model_not_found", "model", "response.create")


class Transport(Realtime):
    def refused(self, *arguments, **options):
        with self.assertRaises(websockets.exceptions.InvalidStatus) as caught:
            self.realtime(*arguments, **options)
        return caught.exception.response

    def test_who_may_connect(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        self.start_server("--api-key-file", keys, "--max-sessions", "1")
        self.assertEqual(self.refused().status_code, 401)
        self.assertEqual(self.refused(additional_headers={"Authorization": "Bearer wrong"}).status_code, 401)
        self.assertEqual(self.refused(subprotocols=["realtime", "openai-insecure-api-key.wrong"]).status_code, 401)
        headers = {"Authorization": "Bearer secret"}
        self.assertEqual(self.refused(additional_headers=headers, origin="https://evil.example").status_code, 403)
        self.assertEqual(self.refused("?model=gpt-9", additional_headers=headers).status_code, 404)
        with self.session(subprotocols=["realtime", "openai-insecure-api-key.secret"]) as client:
            self.assertEqual(client.subprotocol, "realtime")
            full = self.refused(additional_headers=headers)
            self.assertEqual((full.status_code, full.headers["Retry-After"]), (503, "1"))
        self.wait_for(lambda: self.sessions(headers) == 0)
        with self.session(subprotocols=["openai-insecure-api-key.secret", "openai-beta.realtime-v1"]) as client:
            self.assertEqual(client.subprotocol, "openai-beta.realtime-v1")
        self.wait_for(lambda: self.sessions(headers) == 0)
        status, got, _ = self.request("GET", "/v1/realtime", headers=headers)
        self.assertEqual((status, got["Upgrade"]), (426, "websocket"))
        hasty = self.connect()
        hasty.sendall(HANDSHAKE.replace(b"Host: x", b"Host: x\r\nAuthorization: Bearer secret") + b"\x81\x80\0\0\0\0")
        self.assertTrue(hasty.recv(100).startswith(b"HTTP/1.1 400 "))
        hasty.close()
        self.wait_for(lambda: self.sessions(headers) == 0)
        self.assertEqual(self.request("GET", "/v1/realtime", headers={
            **headers, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "1"})[0], 400)
        status, got, body = self.request("GET", "/v1/realtime", headers={
            **headers, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "12",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
        self.assertEqual((status, got["Sec-WebSocket-Version"]), (426, "13"))
        self.assertEqual(json.loads(body)["error"]["param"], "Sec-WebSocket-Version")
        self.wait_for(lambda: self.sessions(headers) == 0)

    def test_messages_that_no_session_takes(self):
        self.start_server("--max-message-kb", "4")
        with self.session() as client:
            client.send("x" * 5000)
            self.assertEqual(self.closed_with(client), 1009)
        with self.session() as client:
            client.send(b"\xff\xfe", text=True)
            self.assertEqual(self.closed_with(client), 1007)
        with self.session() as client:
            client.socket.sendall(b"\x9f\xff\xff\xff")  # a reserved kind of frame
            self.assertIn(self.closed_with(client), (1002, None))
        with self.session() as client:
            client.socket.close()  # without a word
        self.wait_for(lambda: self.sessions() == 0)

    def test_times(self):
        self.start_server("--session-idle-s", "1")
        with self.session() as client:
            self.assertEqual(self.hear(client)["error"]["code"], "session_expired")
            self.assertEqual(self.closed_with(client), 1008)
        self.wait_for(lambda: self.sessions() == 0)
        self.end_server()
        self.start_server("--idle-timeout-s", "6")
        silent = self.connect()  # it does not even answer pings
        silent.sendall(HANDSHAKE)
        self.assertTrue(silent.recv(100).startswith(b"HTTP/1.1 101 "))
        self.wait_for(lambda: self.metric('syrinx_requests_total{route="/v1/realtime",code="101"}') == 1)
        self.wait_for(lambda: (self.sessions(), self.free_slots()) == (0, 4))  # the session ends behind its connection
        silent.close()
        self.wait_for(self.lives_by_its_pongs)

    def test_who_is_shown_out_may_stand_still(self):
        """Before it answers the closing frame, for seconds: it is not reset meanwhile."""
        self.start_server("--session-idle-s", "1")
        with self.connect() as client:
            client.sendall(HANDSHAKE)
            heard = b""
            while heard.count(b"nothing has been asked for 1 s") < 2:  # in an event, and in the closing frame
                part = client.recv(65536)
                self.assertTrue(part, heard)
                heard += part
            time.sleep(3)
            for _ in range(2):  # the second would tell
                client.sendall(b"\x8a\x80\0\0\0\0")

    def lives_by_its_pongs(self):
        """A client that says nothing and answers pings is there for longer than the idle time, unless the machine stands still."""
        with self.connect() as client, contextlib.suppress(OSError, IndexError):  # it has been cut
            client.sendall(HANDSHAKE)
            stream = client.makefile("rb")
            while stream.readline() not in (b"\r\n", b""):
                pass
            for _ in range(4):  # one each half of that time
                while stream.read(1)[0] != 0x89:
                    size = stream.read(1)[0]
                    stream.read(int.from_bytes(stream.read(2), "big") if size == 126 else size)
                stream.read(stream.read(1)[0])
                client.sendall(b"\x8a\x80\0\0\0\0")
            return True
        return False

    def test_a_reader_that_takes_nothing_is_cut(self):
        self.start_server("--stalled-reader-s", "5")
        with self.connect(receive_bytes=4096) as stalled:
            stalled.sendall(HANDSHAKE)
            self.assertTrue(stalled.recv(100).startswith(b"HTTP/1.1 101 "))
            message = json.dumps({"type": "response.create", "response": {"input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": LONG}]}]}}).encode()
            stalled.sendall(b"\x81\xfe" + len(message).to_bytes(2, "big") + b"\0\0\0\0" + message)
            with self.session() as client:  # costs nobody else anything
                self.ask_for(client, "Hello there.")
                self.check_same(self.sound_of(self.hear_until(client, "response.done")), self.spoken())
            self.wait_for(lambda: self.metric('syrinx_generation_stopped_total{reason="cancelled"}') == 1)
            self.wait_for(lambda: (self.sessions(), self.free_slots()) == (0, 4))

    def test_the_server_goes(self):
        self.start_server("--drain-timeout-s", "1")
        with self.session() as client:
            self.ask_for(client, LONG)
            self.hear_until(client, "response.output_audio.delta")
            self.server.terminate()
            self.assertEqual(self.closed_with(client), 1001)
        self.end_server(terminate=False)
        self.start_server("--drain-timeout-s", "600")
        with self.session() as client:  # nothing is under way: nothing is waited for
            self.server.terminate()
            self.assertEqual(self.hear(client)["error"]["code"], "draining")
            self.assertEqual(self.closed_with(client), 1001)
        self.end_server(terminate=False)


class OpenAi(Realtime):
    def setUp(self):
        super().setUp()
        self.start_server()
        self.client = openai.OpenAI(base_url=f"http://{self.host}:{self.port}/v1", api_key="any", max_retries=0)

    def tearDown(self):
        self.client.close()
        super().tearDown()

    def test_speech(self):
        with self.client.realtime.connect(model="gpt-realtime") as connection:
            self.assertEqual(connection.recv().type, "session.created")
            connection.session.update(session={"type": "realtime", "audio": {"output": {
                "voice": "bob", "format": {"type": "audio/pcm", "rate": 24000}}}})
            self.assertEqual(connection.recv().session.audio.output.voice, "bob")
            connection.conversation.item.create(item=SPOKEN)
            connection.response.create()
            sound, words, response = heard_by(connection)
            self.assertEqual((response.status, response.output[0].content[0].transcript, words), ("completed", "Hello there.", "Hello there."))
            self.check_same(sound, self.spoken(voice="bob"))
            connection.response.cancel()
            self.assertEqual(connection.recv().error.code, "response_cancel_not_active")


if __name__ == "__main__":
    unittest.main()
