"""`speak --dry-run`: how texts are read out, with a small lexicon and no checkpoint."""
import json
import unittest

from program import DATA, Program

FIELDS = ["text", "words", "phonemes", "rules", "begin", "end", "dropped"]


class DryRun(Program):
    def setUp(self):
        super().setUp()
        self.lexicon = self.folder / "home/data/models/english-g2p"
        self.lexicon.mkdir(parents=True)
        (self.lexicon / "us_gold.json").write_bytes((DATA / "g2p/tiny_gold.json").read_bytes())

    def dry(self, *arguments, text=b""):
        """The objects that are printed, of a run that succeeds; nothing else is written."""
        code, output, errors = self.run_it("speak", "--dry-run", *arguments, text=text)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(list(self.out.iterdir()), [])
        sentences = [json.loads(line) for line in output.splitlines()]
        for sentence in sentences:
            self.assertEqual(list(sentence), FIELDS)
            self.assertEqual(sentence["words"], " ".join(word["word"] for word in sentence["rules"]))
            for word in sentence["rules"]:
                self.assertEqual(list(word), ["word", "rule", "sound", "phonemes", "begin", "end"])
                self.assertIn(word["phonemes"], sentence["phonemes"])
                self.assertLess(word["begin"], word["end"])
        return sentences

    def test_a_sentence_a_line(self):
        first, second = self.dry("The cats run, TV!", "Hello $2.")
        self.assertEqual((first["text"], first["words"], first["phonemes"]),
                         ("The cats run, TV!", "the cats run T V", "ðə kˈæts ɹˈʌn, tˌivˈi!"))
        self.assertEqual([word["rule"] for word in first["rules"]],
                         ["function-word", "lexicon-stem", "lexicon", "spelled"])
        self.assertEqual(second["rules"][1], {"word": "two", "rule": "money", "sound": "lexicon", "phonemes": "tˈu",
                                              "begin": 24, "end": 26})
        self.assertEqual((second["begin"], second["end"]), (18, 27))

    def test_standard_input_as_it_arrives(self):
        process = self.start("speak", "--dry-run")
        process.stdin.write("The cat. Hello ".encode())
        process.stdin.flush()
        self.assertEqual(json.loads(process.stdout.readline())["words"], "the cat")  # before the end of the text
        output, errors = process.communicate("wörld.".encode())
        self.assertEqual((process.returncode, errors), (0, b""))
        self.assertEqual(json.loads(output)["text"], "Hello wörld.")

    def test_bytes_of_the_text(self):
        text = "é – “The cat” 😀 run. Dog"
        for sentence in self.dry(text):
            self.assertEqual(text.encode()[sentence["begin"]:sentence["end"]].decode(), sentence["text"])
            for word in sentence["rules"]:
                source = text.encode()[word["begin"]:word["end"]].decode()
                self.assertEqual(source.lower().replace("é", "e"), word["word"].lower())
        self.assertEqual([sentence["dropped"] for sentence in self.dry(text)], [1, 0])

    def test_a_whole_command_stays_silent(self):
        for more in (["--out", "x.wav", "--json", "--times", "x.times"], ["--play", "--speed", "2"], ["--noise"],
                     ["--threads", "2", "--seed", "3", "--precision", "f32"], ["--cast", "ann=no.such.wav"],
                     ["--model", "kokoro", "--voice", "af_nobody"], ["--lexicon", str(self.lexicon)]):
            self.assertEqual([sentence["words"] for sentence in self.dry("The cat.", *more)], ["the cat"], more)

    def test_marks_and_dictionary(self):
        own = self.folder / "mine.txt"
        own.write_text("cat\t/mjˈW/\n")
        first, second = self.dry("The cat [pause:1s] [voice: am_adam] C++ cats", "--dictionary", own)
        self.assertEqual((first["words"], first["rules"][1]["rule"]), ("the cat", "dictionary"))
        self.assertEqual(second["begin"], 36)
        (plain,) = self.dry("[pause:1s] cat", "--plain")
        self.assertEqual(plain["words"].split()[-1], "cat")
        self.assertGreater(len(plain["rules"]), 1)

    def test_escapes_show_their_phonemes(self):
        (sentence,) = self.dry("[Cats](/kˈæts/) run")
        self.assertEqual(sentence["words"], "cats run")
        self.assertEqual(sentence["rules"][0]["rule"], "phonemes")
        self.assertEqual(sentence["rules"][0]["phonemes"], "kˈæts")

    def test_any_text_is_json(self):
        for text in ("a \" \\ \t \u0001 \x7f \u009b cat", "cat \ufffe\uffff 日本 \U0001f600 \u202e dog", "[" * 5000 + "cat",
                     "cat " * 5000, "<b>cat</b>\r\n\r\ncat\u2028dog", "\ufeffcat"):
            self.assertTrue(any("cat" in sentence["words"] for sentence in self.dry("-", text=text.encode())), text[:40])

    def test_long_texts(self):
        sentences = self.dry("-", text=b"The cat run.\n" * 100_000)  # 1.3 MB
        self.assertEqual(len(sentences), 100_000)
        self.assertEqual(sentences[-1]["end"], 1_299_999)
        (one,) = self.dry("-", text=b"cat " * 200_000)
        self.assertEqual(len(one["rules"]), 200_000)
        self.check_fails(6, "sentence", "speak", "--dry-run", text=b"cat " * 300_000)

    def test_errors(self):
        for text, words in ((b"", "nothing to say"), (b" \n", "nothing to say"), ("日本".encode(), "nothing to say"),
                            (b"cat \xed\xa0\x80", "UTF-8"), (b"cat \xff", "UTF-8"), (b"cat \x00 dog", "zero"),
                            (b"cat [pause:90s]", "line 1")):
            self.check_fails(2, words, "speak", "--dry-run", "-", text=text)
        self.check_fails(2, "nothing to say", "speak", "--dry-run", "")
        self.check_fails(2, "phonemes", "speak", "--dry-run", "--phonemes", "kˈæt")
        self.check_fails(5, "'ff_siwis' speaks French", "speak", "--dry-run", "cat", "--voice", "ff_siwis")
        self.check_fails(2, "weight", "speak", "--dry-run", "cat", "--voice", "a:b")
        self.check_fails(5, "as it is written", "speak", "--dry-run", "cat", "--model", DATA / "pocket_tts/english")
        self.check_fails(5, "--temperature", "speak", "--dry-run", "cat", "--temperature", "1")
        self.check_fails(3, "syrinx list", "speak", "--dry-run", "cat", "--model", "unheard")
        self.check_fails(2, "fetched", "speak", "--dry-run", "cat", "--model", "hf://owner/repository/kokoro.onnx")
        self.check_fails(3, "mine.txt", "speak", "--dry-run", "cat", "--dictionary", "mine.txt")
        (self.lexicon / "us_gold.json").unlink()
        self.check_fails(3, "syrinx pull english-g2p", "speak", "--dry-run", "cat")

    def test_sentences_before_an_error_are_printed(self):
        code, output, errors = self.run_it("speak", "--dry-run", "-", text=b"The cat.\n\ncat \x00 dog")
        self.assertEqual(code, 2, errors)
        self.assertEqual(json.loads(output)["words"], "the cat")

    def test_signs_alone_have_no_words(self):
        for text in ("[", "]", "()", "...", "\"", "—", "😀"):
            code, output, errors = self.run_it("speak", "--dry-run", text)
            (sentence,) = map(json.loads, output.splitlines())
            self.assertEqual((code, sentence["text"], sentence["words"], sentence["rules"]), (2, text, "", []), errors)
            self.assertIn("nothing to say", errors)
        self.assertEqual([sentence["words"] for sentence in self.dry("Cat. [")], ["cat", ""])

    def test_speech_uses_the_same_phonemes(self):
        model = self.folder / "tiny"
        (model / "voices").mkdir(parents=True)
        (model / "tiny.onnx").write_bytes((DATA / "kokoro/tiny.onnx").read_bytes())
        (model / "voices/af_heart.bin").write_bytes((DATA / "kokoro/tiny_voice.bin").read_bytes())
        text = "The cats run to TV 2, not cat-dog!"
        (sentence,) = self.dry("--model", model, text)
        spoken = [self.run_it("speak", "--model", model, *more, "--out", "-", "--format", "pcm")
                  for more in ([text], ["--phonemes", sentence["phonemes"]])]
        self.assertEqual([code for code, _, _ in spoken], [0, 0], spoken[0][2])
        self.assertGreater(len(spoken[0][1]), 10_000)
        self.assertEqual(spoken[0][1], spoken[1][1])


if __name__ == "__main__":
    unittest.main()
