"""/v1/realtime asked by clients of others, unmodified: OpenAI's Python package and websockets."""
import base64
import contextlib
import json
import socket
import time
import unittest

import openai
import websockets
from websockets.sync.client import connect

from server import LONG, Server

HANDSHAKE = (b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
SPOKEN = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello there."}]}


class Realtime(Server):
    def realtime(self, query="?model=gpt-realtime", **options):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return connect(f"ws://{host}:{self.port}/v1/realtime{query}", compression=None, max_size=None, open_timeout=30,
                       **options)

    @contextlib.contextmanager
    def session(self, *arguments, **options):
        with self.realtime(*arguments, close_timeout=2, **options) as client:
            self.assertEqual(self.hear(client)["type"], "session.created")
            yield client

    def say(self, client, kind, **fields):
        client.send(json.dumps({"type": kind, **fields}))

    def hear(self, client, timeout=30):
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
        self.wait_for(lambda: self.logged("response"))
        self.assertEqual(self.logged("response")[0]["stopped"], "eos")
        self.wait_for(lambda: [line for line in self.logged("request") if line["route"] == "/v1/realtime"])
        self.assertEqual([line["status"] for line in self.logged("request") if line["route"] == "/v1/realtime"], [101])
        self.assertEqual(self.metric('syrinx_requests_total{route="/v1/realtime",code="101"}'), 1)
        self.wait_for(lambda: self.free_slots() == 4)

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
            self.check_error(client, "response_cancel_not_active", None, "response.cancel")
            self.ask_for(client, LONG)
            self.hear_until(client, "response.output_audio.delta")
            self.check_error(client, "conversation_already_has_active_response", None, "response.create")
            self.say(client, "response.cancel")
            before = time.monotonic()
            done = self.hear_until(client, "response.done")
            self.assertLess(time.monotonic() - before, 5)
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
            self.check_error(client, "item_not_found", "item_id", "conversation.item.retrieve", item_id=item["id"])
            self.ask_for(client, "Hello there.")
            self.check_same(self.sound_of(self.hear_until(client, "response.done")), self.spoken())

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
            self.ask_for(client, "Speak faster.", audio={"output": {"speed": 2}})
            failed = self.hear(client)
            self.assertEqual((failed["type"], failed["error"]["param"]), ("error", "speed"), failed)


class Transport(Realtime):
    def refused(self, *arguments, **options):
        with self.assertRaises(websockets.exceptions.InvalidStatus) as caught:
            self.realtime(*arguments, **options)
        return caught.exception.response

    def test_who_may_connect(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        self.start_server("--api-key-file", keys, "--speech-slots", "1")
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
        self.wait_for(lambda: self.free_slots() == 1)
        status, got, _ = self.request("GET", "/v1/realtime", headers=headers)
        self.assertEqual((status, got["Upgrade"]), (426, "websocket"))
        hasty = self.connect()
        hasty.sendall(HANDSHAKE.replace(b"Host: x", b"Host: x\r\nAuthorization: Bearer secret") + b"\x81\x80\0\0\0\0")
        self.assertTrue(hasty.recv(100).startswith(b"HTTP/1.1 400 "))
        hasty.close()
        self.wait_for(lambda: self.free_slots() == 1)
        self.assertEqual(self.request("GET", "/v1/realtime", headers={
            **headers, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "1"})[0], 400)
        status, got, body = self.request("GET", "/v1/realtime", headers={
            **headers, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "12",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
        self.assertEqual((status, got["Sec-WebSocket-Version"]), (426, "13"))
        self.assertEqual(json.loads(body)["error"]["param"], "Sec-WebSocket-Version")
        self.wait_for(lambda: self.free_slots() == 1)

    def closed_with(self, client):
        with self.assertRaises(websockets.exceptions.ConnectionClosed) as caught:
            while True:
                client.recv(timeout=30)
        return caught.exception.rcvd.code if caught.exception.rcvd else None

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
        self.wait_for(lambda: self.free_slots() == 4)

    def test_times(self):
        self.start_server("--session-idle-s", "1", "--idle-timeout-s", "1")
        with self.session() as client:  # it answers pings, and says nothing
            self.assertEqual(self.hear(client)["error"]["code"], "session_expired")
            self.assertEqual(self.closed_with(client), 1008)
        self.wait_for(lambda: self.free_slots() == 4)
        self.end_server()
        self.start_server("--idle-timeout-s", "1")
        silent = self.connect()  # it does not even answer pings
        silent.sendall(HANDSHAKE)
        self.assertTrue(silent.recv(100).startswith(b"HTTP/1.1 101 "))
        self.assertEqual(self.free_slots(), 3)
        self.wait_for(lambda: self.free_slots() == 4)
        silent.close()

    def test_a_reader_that_takes_nothing_is_cut(self):
        self.start_server("--stalled-reader-s", "1")
        stalled = self.connect(receive_bytes=4096)
        stalled.sendall(HANDSHAKE)
        self.assertTrue(stalled.recv(100).startswith(b"HTTP/1.1 101 "))
        message = json.dumps({"type": "response.create", "response": {"input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": LONG}]}]}}).encode()
        stalled.sendall(b"\x81\xfe" + len(message).to_bytes(2, "big") + b"\0\0\0\0" + message)
        self.wait_for(lambda: self.free_slots() == 3)
        with self.session() as client:  # costs nobody else anything
            self.ask_for(client, "Hello there.")
            self.check_same(self.sound_of(self.hear_until(client, "response.done")), self.spoken())
        self.wait_for(lambda: self.free_slots() == 4)
        stalled.close()

    def test_the_server_goes(self):
        self.start_server("--drain-timeout-s", "1")
        with self.session() as client:
            self.ask_for(client, LONG)
            self.hear_until(client, "response.output_audio.delta")
            self.server.terminate()
            self.assertEqual(self.closed_with(client), 1001)
        self.end_server(terminate=False)
        self.start_server("--drain-timeout-s", "25")
        with self.session() as client:  # nothing is under way: nothing is waited for
            before = time.monotonic()
            self.server.terminate()
            self.assertEqual(self.closed_with(client), 1001)
            self.assertLess(time.monotonic() - before, 10)
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
            sound, words = b"", ""
            for event in connection:
                if event.type == "response.output_audio.delta":
                    sound += base64.b64decode(event.delta)
                elif event.type == "response.output_audio_transcript.delta":
                    words += event.delta
                elif event.type == "response.done":
                    self.assertEqual((event.response.status, event.response.output[0].content[0].transcript),
                                     ("completed", "Hello there."))
                    break
            self.assertEqual(words, "Hello there.")
            self.check_same(sound, self.spoken(voice="bob"))
            connection.response.cancel()
            self.assertEqual(connection.recv().error.code, "response_cancel_not_active")


if __name__ == "__main__":
    unittest.main()
