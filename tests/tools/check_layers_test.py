"""tools/check_layers on small trees: which includes and folders it refuses."""

import pathlib
import subprocess
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers"


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def faults(self, **includes):
        """The faults of a tree in which each file (its path with __ for /) includes the given header."""
        for name, header in includes.items():
            path = self.root / (name.replace("__", "/") + ".h")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#include "{header}"\n')
        run = subprocess.run([CHECK, self.root], stdout=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode != 0, bool(run.stdout))
        return run.stdout

    def test_include_of_lower_layer_is_allowed(self):
        self.assertEqual(self.faults(src__store__hub="base/result.h"), "")

    def test_include_of_upper_layer_is_refused(self):
        self.assertIn("points up", self.faults(src__base__clock="engine/threads.h"))

    def test_store_stands_on_base_alone(self):
        self.assertIn("points up", self.faults(src__store__hub="tensor/zip.h"))

    def test_include_between_models_is_refused(self):
        (self.root / "src/engine/families/kokoro").mkdir(parents=True)
        self.assertIn("may not include model", self.faults(src__models__whisper__model="models/kokoro/voice.h"))

    def test_include_of_part_of_models_is_allowed(self):
        (self.root / "src/engine/families/speaker").mkdir(parents=True)
        self.assertEqual(self.faults(src__models__speaker__model="models/codec/decoder.h"), "")

    def test_include_of_model_by_part_is_refused(self):
        (self.root / "src/engine/families/speaker").mkdir(parents=True)
        self.assertIn("may not include model", self.faults(src__models__codec__decoder="models/speaker/model.h"))

    def test_include_of_lower_room_is_allowed(self):
        self.assertEqual(self.faults(src__server__wyoming__session="server/host/host.h"), "")
        self.assertEqual(self.faults(src__engine__families__whisper__stream="engine/schedule/turns.h"), "")
        self.assertEqual(self.faults(src__engine__speech__session="engine/threads.h"), "")

    def test_include_of_upper_room_is_refused(self):
        self.assertIn("points up", self.faults(src__server__http__server="server/wyoming/connection.h"))
        self.assertIn("points up", self.faults(src__engine__speech__engine="engine/families/families.h"))
        self.assertIn("points up", self.faults(src__server__host__jobs="server/service.h"))

    def test_include_of_room_on_same_floor_is_refused(self):
        self.assertIn("points up", self.faults(src__server__wyoming__session="server/openai/speech_request.h"))
        self.assertIn("points up", self.faults(src__engine__families__kokoro__engine="engine/families/whisper/stream.h"))

    def test_room_without_floor_is_refused(self):
        self.assertIn("has no floor", self.faults(src__server__attic__box="server/host/host.h"))

    def test_folder_with_too_many_sources_is_refused(self):
        (self.root / "src/store").mkdir(parents=True)
        for number in range(26):
            (self.root / f"src/store/part{number}.cc").touch()
        self.assertIn("26 sources", self.faults())


if __name__ == "__main__":
    unittest.main()
