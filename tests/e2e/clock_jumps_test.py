"""`syrinx serve` on a machine whose wall clock is set while one client is spoken to and another one is heard."""
import array
import base64
import datetime
import http.client
import os
import random
import struct
import unittest

from program import DATA
from realtime_clients_test import Realtime
from server import ENGLISH, LONG

DAY = 24 * 3600
MODEL = ["--recognition-model", DATA / "transducer/hybrid_streaming.nemo", "--speech-model", ENGLISH, "--voices",
         f"ann={ENGLISH / 'voice.safetensors'}", "--voice", "ann"]
# Minutes that a machine which is stopped for seconds never reaches, and all of them less than a day.
PATIENT = ["--stalled-reader-s", "1800", "--idle-timeout-s", "1800", "--request-timeout-s", "1800", "--stuck-after-s", "1800",
           "--session-idle-s", "1800", "--max-session-s", "3600",
           "--max-backlog-s", "60"]  # all that it appends is less, however far ahead of its own pace that comes


class ClockJumps(Realtime):
    def setUp(self):
        super().setUp()
        self.ahead = self.folder / "ahead"
        self.ahead.write_bytes(bytes(8))
        self.start_server(*PATIENT, model=MODEL, variables={"LD_PRELOAD": os.environ["SYRINX_WALL_CLOCK"],
                                                            "WALL_CLOCK_AHEAD": str(self.ahead)})

    def set_ahead(self, seconds):
        with open(self.ahead, "r+b", buffering=0) as file:
            file.write(struct.pack("=q", seconds))

    def stamps_ahead(self):
        """How far the server's log is ahead, of the line that tells of the request with this id."""
        self.asked = getattr(self, "asked", 0) + 1
        self.request("GET", "/v1/models", headers={"X-Request-Id": f"stamp-{self.asked}"})
        mine = lambda: [line for line in self.logged("request") if line["id"] == f"stamp-{self.asked}"]
        self.wait_for(mine)
        told = datetime.datetime.fromisoformat(mine()[0]["time"].replace("Z", "+00:00"))
        return (told - datetime.datetime.now(datetime.timezone.utc)).total_seconds()

    def append(self, client, sound):
        for at in range(0, len(sound), 4800):
            self.say(client, "input_audio_buffer.append", audio=base64.b64encode(sound[at:at + 4800]).decode())

    def words(self, client):
        self.say(client, "input_audio_buffer.commit")
        events = self.hear_until(client, "conversation.item.input_audio_transcription.completed")
        self.assertFalse([event for event in events if event["type"] == "error"], events)
        return events[-1]["transcript"]

    def test_nobody_notices(self):
        noise = random.Random(1)
        sound = array.array("h", (noise.randrange(-9000, 9000) for _ in range(24000 * 2))).tobytes()
        expected = self.spoken(LONG)
        self.assertGreater(len(expected), 1 << 20)
        kept = self.connection_to()
        kept.request("GET", "/health")
        self.assertEqual(kept.getresponse().read()[:1], b"{")
        with self.session("?intent=transcription") as client, self.connect(receive_bytes=1 << 14) as listener:
            self.say(client, "session.update", session={"type": "transcription", "audio": {"input": {"turn_detection": None}}})
            self.assertEqual(self.hear(client)["type"], "session.updated")
            self.ask(listener, response_format="pcm")
            reply = http.client.HTTPResponse(listener)
            reply.begin()
            body = reply.read(1000)
            for seconds in (DAY, -DAY, 400 * DAY, 0):
                self.append(client, sound[:len(sound) // 2])
                self.assertEqual(self.free_slots(), 3)  # there is more to be said than anybody has taken
                self.set_ahead(seconds)
                self.assertLess(abs(self.stamps_ahead() - seconds), DAY / 2)  # so it has been seen
                self.append(client, sound[len(sound) // 2:])
                self.assertGreater(len(self.words(client)), 5)
                body += reply.read(10000)
            body += reply.read()
            self.check_same(body, expected)
            self.say(client, "session.update", session={"type": "transcription", "audio": {"input": {"turn_detection": None}}})
            self.assertEqual(self.hear(client)["type"], "session.updated")
        kept.request("GET", "/health")
        self.assertEqual(kept.getresponse().status, 200)
        kept.close()
        self.check_same(self.spoken(LONG), expected)
        self.wait_for(lambda: (self.sessions(), self.free_slots(), self.free_slots("recognition")) == (0, 4, 4))


if __name__ == "__main__":
    unittest.main()
