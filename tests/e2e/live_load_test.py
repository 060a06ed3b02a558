"""Admission by load: a server whose limit is next to nothing takes one live stream at a time, and batch work beside it."""
import random
import unittest

from program import DATA, tiny_whisper, wav
from server import ENGLISH, Server, form

MODEL = ["--recognition-model", DATA / "transducer/hybrid_streaming.nemo", "--speech-model", ENGLISH, "--voices",
         f"ann={ENGLISH / 'voice.safetensors'}", "--voice", "ann"]


def noise(seconds):
    dice = random.Random(1)
    return wav(b"".join(dice.randrange(-9000, 9000).to_bytes(2, "little", signed=True) for _ in range(int(16000 * seconds))))


class LiveLoad(Server):
    def refusals(self):
        return self.metric('syrinx_rejected_total{reason="overloaded"}')

    def test_second_live_stream_is_refused(self):
        self.start_server("--live-load", "0.000001", "--wyoming-port", "0", "--text-timeout-s", "600", model=MODEL)
        self.assertEqual(self.metric("syrinx_live_load_limit"), 1e-6)
        body = form(noise(1))
        with self.hold_recognition():
            headers, message = self.check_refused(503, "overloaded", None, "POST", "/v1/audio/speech", {"input": "Hello."})
            wait = int(headers["Retry-After"])
            self.assertTrue(1 <= wait <= 60, wait)
            self.assertIn(f"ask again in about {wait} s", message)
            # Batch work goes all the same.
            self.assertEqual(self.speak("Hello.", stream=False)[0], 200)
            self.assertEqual(self.request("POST", "/v1/audio/transcriptions", body,
                                          {"Content-Type": "multipart/form-data; boundary=b"})[0], 200)
            self.assertEqual(self.refusals(), 1)
            self.assertGreater(self.metric('syrinx_live_load{model="hybrid_streaming"}'), 0)
        self.wait_for(lambda: self.free_slots("recognition") == 4)
        self.assertTrue(self.spoken("Hello."))
        self.assertEqual(self.refusals(), 1)
        self.assertEqual(self.metric('syrinx_live_streams_admitted_total{model="hybrid_streaming"}'), 1)
        self.assertEqual(self.metric('syrinx_live_streams_admitted_total{model="english"}'), 1)
        self.end_server()
        refused, = self.logged("refused")
        self.assertEqual((refused["reason"], refused["kind"], refused["live_streams"], refused["retry_after_s"]),
                         ("overloaded", "speech", 1, wait))

    def test_without_a_limit_slots_decide(self):
        self.start_server("--live-load", "0", "--wyoming-port", "0", "--text-timeout-s", "600", model=MODEL)
        with self.hold_recognition():
            self.assertTrue(self.spoken("Hello."))
        self.assertEqual(self.refusals(), 0)

    def test_whole_texts_are_no_live_work(self):
        self.start_server(model=MODEL)
        steps = 'syrinx_step_duration_seconds_count{model="english"}'
        self.assertEqual(self.speak("Hello.", stream=False)[0], 200)
        self.assertEqual(self.metric(steps), 0)
        self.assertEqual(self.metric('syrinx_live_streams_admitted_total{model="english"}'), 0)
        self.assertTrue(self.spoken("Hello."))
        self.assertGreater(self.metric(steps), 0)
        self.assertEqual(self.metric('syrinx_live_streams_admitted_total{model="english"}'), 1)

    def test_whole_utterances_are_no_live_streams(self):
        model = ["--recognition-model", tiny_whisper(self.folder / "tiny"), *MODEL[2:]]
        self.start_server("--live-load", "0.000001", "--wyoming-port", "0", "--text-timeout-s", "600", model=model)
        with self.hold_recognition(), self.hold_recognition():
            self.assertEqual(self.metric('syrinx_live_load{model="tiny"}'), 0)
            self.assertTrue(self.spoken("Hello."))
        self.assertEqual(self.refusals(), 0)
        self.assertEqual(self.metric('syrinx_live_streams_admitted_total{model="tiny"}'), 0)
        self.assertEqual(self.metric('syrinx_live_streams_admitted_total{model="english"}'), 1)


if __name__ == "__main__":
    unittest.main()
