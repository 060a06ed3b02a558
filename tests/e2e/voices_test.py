"""`syrinx serve` and the voices that clients upload: made, spoken with, kept, deleted, and refused with nothing lost."""
import http.client
import json
import resource
import shutil
import stat
import struct
import unittest

from program import DATA, tone, wav
from server import ENGLISH, LONG, MODEL, Server

VOICES = "/v1/audio/voices"
SAMPLE = (DATA / "pocket_tts/voice.wav").read_bytes()
FORM = {"Content-Type": "multipart/form-data; boundary=b"}


def form(*parts):
    return b"".join(b"--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n" %
                    (name.encode(), value.encode() if isinstance(value, str) else value) for name, value in parts) + b"--b--\r\n"


class Voices(Server):
    def setUp(self):
        super().setUp()
        self.shelf = self.folder / "home/data/voices/english"

    def upload(self, name, sample=SAMPLE, headers=()):
        status, _, body = self.request("POST", VOICES, form(("name", name), ("audio_sample", sample)), {**FORM, **dict(headers)})
        return status, json.loads(body)

    def uploaded(self, name, sample=SAMPLE):
        status, voice = self.upload(name, sample)
        self.assertEqual(status, 200, voice)
        return voice

    def check_not_taken(self, status, code, param, *parts):
        """Refused, in a sentence; the shelf is as it was."""
        before = self.on_shelf()
        _, message = self.check_refused(status, code, param, "POST", VOICES, form(*parts), FORM)
        self.assertEqual(self.on_shelf(), before)
        return message

    def on_shelf(self):
        return sorted(path.name for path in self.shelf.iterdir()) if self.shelf.exists() else []

    def listed(self):
        return {voice["id"]: voice for voice in json.loads(self.request("GET", VOICES)[2])["voices"]}

    def deleted(self, name):
        status, _, body = self.request("DELETE", f"{VOICES}/{name}")
        self.assertEqual((status, json.loads(body)), (200, {"id": name, "object": "audio.voice.deleted", "deleted": True}))


class Life(Voices):
    def test_an_uploaded_voice_speaks_at_once_and_after_a_restart_until_it_is_deleted(self):
        self.start_server()
        voice = self.uploaded("me")
        self.assertEqual({key: voice[key] for key in ("id", "object", "name", "model", "kind", "type")},
                         {"id": "me", "object": "audio.voice", "name": "me", "model": "english", "kind": "cloned",
                          "type": "audio_sample"})
        bob = self.spoken(voice="bob")  # the same recording, named by the settings
        self.check_same(self.spoken(voice="me"), bob)
        self.check_same(self.spoken(voice={"id": "me"}), bob)
        self.assertEqual(list(self.listed()), ["ann", "bob", "me"])
        self.assertEqual(self.listed()["me"], voice)
        self.assertIsNone(self.listed()["bob"]["created_at"])
        self.assertEqual(json.loads(self.request("GET", VOICES + "/me")[2]), voice)
        self.assertEqual(self.on_shelf(), ["me.safetensors"])
        self.assertEqual(stat.S_IMODE((self.shelf / "me.safetensors").stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.shelf.stat().st_mode), 0o700)
        self.assertEqual(self.metric('syrinx_uploaded_voices{model="english"}'), 1)
        self.end_server()
        line, = self.logged("voice_upload")
        self.assertEqual((line["model"], line["stopped"]), ("english", "done"))
        self.assertNotIn("me.", json.dumps(line))

        self.start_server()
        self.assertEqual(self.listed()["me"], voice)
        self.check_same(self.spoken(voice="me"), bob)
        self.deleted("me")
        self.assertEqual((self.on_shelf(), list(self.listed())), ([], ["ann", "bob"]))
        self.check_refused(404, "voice_not_found", "voice", "POST", "/v1/audio/speech", {"input": "x", "voice": "me"})
        for method in ("GET", "DELETE"):
            self.check_refused(404, "voice_not_found", None, method, VOICES + "/me")
        self.uploaded("me")  # its name is free again

    def test_the_voice_of_the_program_and_the_makers_file_make_the_same(self):
        """What `voices export` writes may be uploaded, too; english/voice.safetensors is the maker's own export."""
        self.start_server()
        file = self.folder / "me.safetensors"
        code, _, errors = self.run_it("voices", "export", "--model", ENGLISH, "--precision", "int8", DATA / "pocket_tts/voice.wav", file)
        self.assertEqual((code, errors), (0, ""))
        self.uploaded("recorded")
        self.assertEqual((self.shelf / "recorded.safetensors").read_bytes(), file.read_bytes())
        self.uploaded("exported", file.read_bytes())
        self.check_same(self.spoken(voice="exported"), self.spoken(voice="recorded"))
        self.uploaded("makers", (ENGLISH / "voice.safetensors").read_bytes())
        self.check_same(self.spoken(voice="makers"), self.spoken(voice="ann"))

    def test_who_speaks_with_a_voice_that_is_deleted_goes_on(self):
        self.start_server("--stalled-reader-s", "600")
        self.uploaded("me")
        expected = self.spoken(LONG, voice="me")
        body = json.dumps({"input": LONG, "voice": "me", "response_format": "pcm"})
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        connection.request("POST", "/v1/audio/speech", body)
        reply = connection.getresponse()
        sound = reply.read(4000)
        self.deleted("me")
        self.check_same(sound + reply.read(), expected)
        connection.close()

    def test_others_hear_nothing_of_uploads(self):
        self.start_server("--stalled-reader-s", "600")
        expected = self.spoken(LONG)
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        connection.request("POST", "/v1/audio/speech", json.dumps({"input": LONG, "response_format": "pcm"}))
        reply = connection.getresponse()
        sound = reply.read(4000)
        for i in range(3):
            self.uploaded(f"voice{i}")
        self.assertEqual(self.free_slots(), 3)  # uploads have one of their own
        self.check_same(sound + reply.read(), expected)
        connection.close()

    def test_wyoming_tells_of_it(self):
        self.start_server("--wyoming-port", "0")
        self.assertEqual(self.described(), ["ann", "bob"])
        self.uploaded("me")
        self.assertEqual(self.described(), ["ann", "bob", "me"])
        self.deleted("me")
        self.assertEqual(self.described(), ["ann", "bob"])

    def described(self):
        """The voices that `describe` tells of."""
        with self.connect(port=self.wyoming_port) as connection:
            connection.sendall(b'{"type": "describe"}\n')
            head = connection.makefile("rb")
            event = json.loads(head.readline())
            info = json.loads(head.read(event["data_length"])) if "data_length" in event else event["data"]
        return [voice["name"] for voice in info["tts"][0]["voices"]]


class Refused(Voices):
    def test_names_are_plain_and_not_taken(self):
        self.start_server()
        for name in ("", "../me", "a/b", "/etc/me", ".me", "..", "me.safetensors", "m\u00e9", "-me", "_me", "a b", "a\0b", "a%2fb",
                     "x" * 65):
            message = self.check_not_taken(400, None, "name", ("name", name), ("audio_sample", SAMPLE))
            self.assertRegex(message, "letters, digits|at most 64")
        self.uploaded("x" * 64)
        self.uploaded("Me")
        for name in ("ann", "Bob", "me", "ME", "alloy", "Verse"):
            self.assertIn("taken", self.check_not_taken(409, "voice_exists", "name", ("name", name), ("audio_sample", SAMPLE)))
        self.assertEqual([path.name for path in self.shelf.parent.iterdir()], ["english"])

    def test_forms_and_samples_that_make_no_voice(self):
        self.start_server("--max-upload-mb", "1")
        name, sample = ("name", "me"), ("audio_sample", SAMPLE)
        refused = self.check_not_taken
        refused(400, None, "name", sample)
        refused(400, None, "audio_sample", name)
        refused(400, None, "audio_sample", name, ("audio_sample", b""))
        refused(400, None, "name", name, name, sample)
        refused(400, None, "file", name, sample, ("file", SAMPLE))
        refused(400, "unknown_parameter", "pitch", name, sample, ("pitch", "1"))
        refused(400, None, "type", name, sample, ("type", "prompt"))
        refused(404, "model_not_found", "model", name, sample, ("model", "gpt-9"))
        self.assertIn("silent", refused(400, None, "audio_sample", name, ("file", wav(b"\0\0" * 16000))))
        self.assertIn("needs 0.25 s", refused(400, None, "audio_sample", name, ("file", wav(tone(0.1)))))
        self.assertIn("AAC", refused(415, None, "audio_sample", name, ("file", b"this is no sound at all")))
        refused(400, None, "audio_sample", name, ("file", SAMPLE[:60]))
        other = (DATA / "pocket_tts/english_7m/voice.safetensors").read_bytes()
        refused(415, None, "audio_sample", name, ("file", other))
        header = json.dumps({"transformer.layers.0.self_attn/cache": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        refused(413, None, "audio_sample", name, ("file", struct.pack("<Q", 1 << 40) + header))
        self.check_refused(413, None, None, "POST", VOICES, form(name, ("file", b"x" * (1 << 20))), FORM)
        self.check_refused(415, None, None, "POST", VOICES, {"name": "me"}, {"Content-Type": "application/json"})
        self.check_refused(400, "invalid_multipart", None, "POST", VOICES, form(name, sample)[:-200], FORM)
        self.assertEqual(list(self.listed()), ["ann", "bob"])
        self.uploaded("me")

    def test_a_client_may_say_what_openai_asks_for(self):
        self.start_server()
        parts = form(("name", "me"), ("file", SAMPLE), ("consent", "cons_1"), ("type", "audio_sample"), ("model", "english"))
        self.assertEqual(self.request("POST", VOICES, parts, FORM)[0], 200)

    def test_what_cannot_be_deleted_stays(self):
        self.start_server()
        self.uploaded("me")
        for name in ("ann", "bob"):
            self.check_refused(403, "voice_not_deletable", None, "DELETE", f"{VOICES}/{name}")
        for name in ("nobody", "", "ME", "%256de", "me.safetensors", "..%2fenglish%2fme", "alloy"):
            self.check_refused(404, "voice_not_found", None, "DELETE", f"{VOICES}/{name}")
        self.check_refused(404, "unknown_url", None, "DELETE", f"{VOICES}/../me")
        headers, _ = self.check_refused(405, None, None, "DELETE", VOICES)
        self.assertEqual(headers["Allow"], "GET, POST")
        headers, _ = self.check_refused(405, None, None, "PUT", VOICES + "/me")
        self.assertEqual(headers["Allow"], "GET, DELETE")
        self.end_server()
        self.start_server("--voice-names", "aunt=me")
        _, message = self.check_refused(409, "voice_in_use", None, "DELETE", VOICES + "/me")
        self.assertIn("settings", message)
        self.end_server()
        self.start_server(model=[*MODEL[:-1], "me"])  # as the voice of requests that name none
        self.check_refused(409, "voice_in_use", None, "DELETE", VOICES + "/me")
        self.check_same(self.spoken(), self.spoken(voice="me"))

    def test_so_many_are_kept(self):
        self.start_server("--max-voices", "2")
        self.uploaded("one")
        self.uploaded("two")
        message = self.check_not_taken(409, "too_many_voices", None, ("name", "three"), ("audio_sample", SAMPLE))
        self.assertIn("delete one", message)
        self.deleted("one")
        self.uploaded("three")

    def test_a_key_is_asked_for(self):
        keys = self.folder / "keys"
        keys.write_text("secret\n")
        self.start_server("--api-key-file", keys)
        self.assertEqual(self.upload("me")[0], 401)
        bears = {"Authorization": "Bearer secret"}
        self.assertEqual(self.upload("me", headers=bears)[0], 200)
        self.assertEqual(self.request("DELETE", VOICES + "/me")[0], 401)
        self.assertEqual(self.request("GET", VOICES + "/me")[0], 401)
        self.assertEqual(self.on_shelf(), ["me.safetensors"])
        self.assertEqual(self.request("DELETE", VOICES + "/me", headers=bears)[0], 200)

    def test_uploads_may_be_off(self):
        self.start_server("--voices-dir", "")
        _, message = self.check_refused(403, "voices_off", None, "POST", VOICES, form(("name", "me"), ("audio_sample", SAMPLE)), FORM)
        self.assertIn("voices_dir", message)


class Faults(Voices):
    def check_not_stored(self, name="me"):
        message = self.check_not_taken(507, "voice_not_stored", None, ("name", name), ("audio_sample", SAMPLE))
        self.assertNotIn(str(self.folder), message)
        self.assertNotIn(name, self.listed())
        self.check_refused(404, "voice_not_found", "voice", "POST", "/v1/audio/speech", {"input": "x", "voice": name})
        self.assertTrue(self.spoken())

    def test_a_full_disk_loses_nothing(self):
        """A limit of the system's stands for it: write() takes a part and then no more."""
        self.start_server()
        self.uploaded("first")
        resource.prlimit(self.server.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        for _ in range(3):
            self.check_not_stored()
        self.assertEqual(self.on_shelf(), ["first.safetensors"])
        resource.prlimit(self.server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.uploaded("me")
        self.end_server()
        error = self.logged("voice_upload")[1]["error"]
        self.assertIn(f"cannot write '{self.shelf}': File too large", error)

    def test_a_folder_that_cannot_be_written_to(self):
        (self.folder / "file").write_text("")
        for place in (self.folder / "file", self.folder / "file/below", "/proc/voices"):
            self.start_server("--voices-dir", place)
            self.check_not_stored()
            self.end_server()

    def test_a_deletion_that_fails_keeps_the_voice(self):
        self.start_server()
        self.uploaded("me")
        (self.shelf / "me.safetensors").unlink()
        (self.shelf / "me.safetensors").mkdir()
        _, message = self.check_refused(500, "voice_not_deleted", None, "DELETE", VOICES + "/me")
        self.assertIn("stays", message)
        self.assertIn("me", self.listed())
        self.assertTrue(self.spoken(voice="me"))
        (self.shelf / "me.safetensors").rmdir()  # somebody else has deleted it: so it has gone
        self.deleted("me")

    def test_files_that_are_no_voices_are_left_out_and_alone(self):
        self.start_server()
        self.uploaded("me")
        self.end_server()
        (self.shelf / "bad.safetensors").write_bytes(b"no voice")
        (self.shelf / "a b.safetensors").write_bytes(b"no name")
        (self.shelf / "link.safetensors").symlink_to(ENGLISH / "voice.safetensors")
        shutil.copy(self.shelf / "me.safetensors", self.shelf / "ann.safetensors")
        files = self.on_shelf()
        self.start_server()
        self.assertEqual((list(self.listed()), self.on_shelf()), (["ann", "bob", "me"], files))
        self.assertIsNone(self.listed()["ann"]["created_at"])
        lines = [line for line in self.lines if "is left out" in line]
        self.assertEqual(len(lines), 2, self.lines)
        # What lies there is nobody's to replace, nor is what another server has put there since.
        (self.shelf / "other.safetensors").write_bytes(b"another server's")
        for name in ("bad", "other"):
            self.check_not_taken(409, "voice_exists", "name", ("name", name), ("audio_sample", SAMPLE))
        self.assertEqual((self.shelf / "other.safetensors").read_bytes(), b"another server's")

    def test_a_client_that_leaves_leaves_no_room_taken(self):
        self.start_server()
        body = form(("name", "me"), ("audio_sample", SAMPLE))
        with self.connect() as connection:
            connection.sendall(b"POST /v1/audio/voices HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                               b"Content-Length: %d\r\n\r\n" % len(body) + body[:-100])
        with self.connect() as connection:
            connection.sendall(b"POST /v1/audio/voices HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                               b"Content-Length: %d\r\n\r\n" % len(body) + body)
        # Either it was there before the client left, or nothing of it is kept.
        self.wait_for(lambda: self.upload("other")[0] == 200)
        self.wait_for(lambda: self.on_shelf() in (["me.safetensors", "other.safetensors"], ["other.safetensors"]))
        self.wait_for(lambda: set(self.listed()) == {"ann", "bob", *(name.partition(".")[0] for name in self.on_shelf())})


if __name__ == "__main__":
    unittest.main()
