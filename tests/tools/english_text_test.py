"""tools/judge/english_text.py: which readings count as the expected one."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "judge"))
import english_text  # noqa: E402

TABLE = english_text.read_respellings()


class EnglishText(unittest.TestCase):
    def is_right(self, expected, *units):
        """Units are words with their phonemes behind a slash."""
        return english_text.is_right(TABLE, expected, [tuple((unit + "/").split("/")[:2]) for unit in units])

    def test_case_and_marks_do_not_count(self):
        self.assertTrue(self.is_right("Hello, “World”!", "hello", "world"))
        self.assertTrue(self.is_right("a ten-year-old", "a", "ten", "year old"))
        self.assertTrue(self.is_right("'tis so", "'tis", "so"))
        self.assertFalse(self.is_right("hello world", "hello"))
        self.assertFalse(self.is_right("hello", "hello", "world"))
        self.assertFalse(self.is_right("", "hello"))

    def test_spelled_letters_are_words_apart(self):
        self.assertTrue(self.is_right("the U S economy", "the", "U S", "economy"))
        self.assertFalse(self.is_right("the U S economy", "the", "us", "economy"))
        self.assertFalse(self.is_right("all us", "all", "U S"))
        self.assertTrue(self.is_right("A B A degree", "a", "B A", "degree"))
        self.assertFalse(self.is_right("has a B", "has", "A", "B"))
        self.assertFalse(self.is_right("has B A", "has", "B", "a"))
        self.assertTrue(self.is_right("The U K's", "the", "U K's"))

    def test_plural_letters(self):
        for said in (("I Ds",), ("I", "D's"), ("I D", "'s")):
            self.assertTrue(self.is_right("your I Dees", "your", *said), said)
        self.assertFalse(self.is_right("your I Dees", "your", "ids"))
        self.assertTrue(self.is_right("the Q and Ays", "the", "Q", "and", "As"))
        self.assertFalse(self.is_right("the Q and Ays", "the", "Q", "and", "as"))

    def test_respelled_sounds(self):
        self.assertTrue(self.is_right("yooz it", "use/jˈuz", "it"))
        self.assertFalse(self.is_right("yooz it", "use/jˈus", "it"))
        self.assertTrue(self.is_right("I red it", "i", "read/ɹˈɛd", "it"))
        self.assertFalse(self.is_right("I red it", "i", "read/ɹˈid", "it"))
        self.assertTrue(self.is_right("the red car", "the", "red/ɹˈɛd", "car"))
        self.assertTrue(self.is_right("a jay son file", "a", "json/ʤˈAsᵊn", "file"))
        self.assertFalse(self.is_right("a jay son file", "a", "J S O N/ʤˌAˌɛsˌOˈɛn", "file"))
        self.assertTrue(self.is_right("day-zha voo", "deja/dˌAʒˈɑ", "vu/vˈu"))

    def test_stress_tells_readings_apart(self):
        self.assertTrue(self.is_right("re-CORD it", "record/ɹəkˈɔɹd", "it"))
        self.assertFalse(self.is_right("in-CREASE it", "increase/ˈɪnkɹˌis", "it"))
        self.assertTrue(self.is_right("in-CREASE it", "increase/ɪnkɹˈis", "it"))

    def test_unrespelled_twin_sounds_otherwise(self):
        self.assertTrue(self.is_right("polish the pole-ish table", "polish/pˈɑlɪʃ", "the", "polish/pˈOlɪʃ", "table"))
        self.assertFalse(self.is_right("polish the pole-ish table", "polish/pˈOlɪʃ", "the", "polish/pˈOlɪʃ", "table"))

    def test_table_is_whole(self):
        for respelling, rows in TABLE.items():
            if respelling != respelling.lower():  # a stress in capitals, which tells it from another respelling
                self.assertIn("-", respelling)
            for row in rows:
                self.assertTrue(row.word or row.sounds, respelling)


if __name__ == "__main__":
    unittest.main()
