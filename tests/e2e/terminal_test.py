"""What a terminal shows: of a stream the line that is being spoken, written over in place, and the lines that stay; of recordings
how far they are."""
import json
import os
import random
import shutil
import struct
import time
import unicodedata
import unittest

from program import DATA, wav
from pseudo_terminal import PseudoTerminal

CODES = {"\x1b[K": "erase", "\x1b[2m": "faint", "\x1b[22m": "normal"}


def width(character):
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """A terminal that knows what the program may use, and nothing else. Cells are pairs of a character and whether it is
    faint. `lines`: what its line shows each time that its rest has been erased, with the number of its row."""

    def __init__(self, columns):
        self.columns, self.rows, self.column, self.faint, self.lines = columns, [[]], 0, False, []

    def feed(self, text):
        at = 0
        while at < len(text):
            code = next((code for code in CODES if text.startswith(code, at)), text[at])
            at += len(code)
            if code in CODES:
                self.control(CODES[code])
            elif code == "\r":
                self.column = 0
            elif code == "\n":
                self.rows.append([])
            else:
                assert code.isprintable(), repr(code)
                self.put(code)

    def control(self, name):
        if name == "erase":
            del self.rows[-1][self.column:]
            self.lines.append((len(self.rows) - 1, list(self.rows[-1])))
        else:
            self.faint = name == "faint"

    def put(self, character):
        wide = width(character)
        if self.column + wide > self.columns:
            self.rows.append([])
            self.column = 0
        row = self.rows[-1]
        row[self.column:self.column + max(1, wide)] = [(character, self.faint)] + [("", self.faint)] * (wide - 1)
        self.column += wide

    def text(self):
        return ["".join(character for character, _ in row) for row in self.rows]


class OnTerminal(PseudoTerminal):
    def setUp(self):
        super().setUp()
        rng = random.Random(3)
        self.sound = b"".join(struct.pack("<h", int(rng.gauss(0, 3000))) for _ in range(16000 * 3))

    def read(self, terminal, until=None):
        return self.read_until(terminal, lambda got: until is not None and until in got)


class Terminal(OnTerminal):
    def arguments(self, model, *more):
        return ["transcribe", "--model", str(model), "--precision", "f32", "--threads", "1", "--stream", "--raw", "s16",
                "--rate", "16000", *more]

    def whisper(self):
        model = self.folder / "tiny"
        shutil.copytree(DATA / "whisper/ct2", model)
        shutil.copy(DATA / "whisper/tokenizer.json", model)
        return self.arguments(model, "--language", "en")

    def transducer(self):
        return self.arguments(DATA / "transducer/hybrid_streaming.nemo")

    def events(self, arguments):
        code, output, errors = self.run_it(*arguments, "--format", "json", text=self.sound)
        self.assertEqual((code, errors), (0, ""))
        return [line for line in map(json.loads, output.splitlines()) if "segment" in line]

    def shown(self, arguments, columns):
        process, terminal = self.on_terminal(arguments, columns)
        process.stdin.write(self.sound)
        process.stdin.close()
        screen = Screen(columns)
        screen.feed(self.read(terminal).decode())
        self.assertEqual((process.wait(120), process.stderr.read()), (0, b""))
        process.stderr.close()
        return screen

    def check(self, arguments, columns):
        """Each partial result is shown in the row below what is final, as much of its end as there is room for."""
        events, screen = self.events(arguments), self.shown(arguments, columns)
        lines = iter(screen.lines)
        told = row = 0
        finals = Screen(columns)
        for event in events:
            text = "".join(c if c.isprintable() else " " for c in event["text"])
            at, line = next(lines)
            self.assertEqual(at, len(finals.rows) - 1)
            if event["final"]:
                self.assertEqual(line, [], "the line that showed it goes first")
                finals.feed("\r" + text + "\r\n")
                continue
            told += 1
            shown = "".join(character for character, _ in line)
            self.assertLess(len(line), columns, "the last column stays free")
            if shown != text:
                self.assertEqual(shown[0], "…")
                self.assertTrue(text.endswith(shown[1:]))
                self.assertGreaterEqual(len(line), columns - 2)
            settled = event["text"].encode()[:event["stable_bytes"]].decode()
            left_out = len(text) - len(shown.lstrip("…"))
            faint = "".join(character for character, faint in line if faint)
            self.assertEqual(faint, text[max(len(settled), left_out):])
        self.assertEqual(next(lines, None), None)
        self.assertEqual(screen.text(), finals.text(), "final lines stay, and nothing else")
        self.assertGreater(told, 1)
        return events

    def test_a_line_is_written_over_until_it_is_final(self):
        events = self.check(self.whisper(), 100)
        self.assertTrue(any(not event["final"] and event["stable_bytes"] < len(event["text"]) for event in events))
        self.assertGreater(sum(event["final"] for event in events), 1)

    def test_settled_words_are_not_faint(self):
        events = self.check(self.transducer(), 300)
        self.assertTrue(all(event["stable_bytes"] == len(event["text"]) for event in events))

    def test_a_narrow_terminal_shows_the_end(self):
        for columns in (12, 40):
            events = self.check(self.transducer(), columns)
            self.assertGreater(max(len(event["text"]) for event in events), columns)

    def test_control_c_leaves_what_was_heard(self):
        process, terminal = self.on_terminal(self.transducer(), 60)
        process.stdin.write(self.sound)
        process.stdin.flush()
        got = self.read(terminal, until=b"\x1b[K")
        self.assertIsNone(process.poll(), "it listens")
        os.write(terminal, b"\x03")
        got += self.read(terminal)
        self.assertEqual((process.wait(120), process.stderr.read()), (130, b"syrinx: stopped while reading\n"))
        process.stdin.close()
        process.stderr.close()
        text = got.decode().replace("^C", "")  # the terminal's own echo
        last = text.split("\x1b[K")[-1]
        self.assertRegex(last, r"^\w[^\r\n]*\r\n$")


class Progress(OnTerminal):
    """The line that tells how far the work is. It is written over, each time whole, and gone when there is something else to
    write; how often it comes is the machine's affair, but for what each test makes come."""

    COLUMNS = 200
    REPLACED = "\r\x1b[K"
    PACE = r"\d+\.\d times faster than real time"

    def transcribe(self, *arguments):
        return ["transcribe", "--model", DATA / "transducer/hybrid_streaming.nemo", "--precision", "f32", "--threads", "1", *arguments]

    def recording(self, name):
        (self.folder / name).write_bytes(wav(self.sound))
        return self.folder / name

    def text(self, path):
        code, output, errors = self.run_it(*self.transcribe(path))
        self.assertEqual((code, errors), (0, ""), "no terminal, no progress")
        self.assertRegex(output.decode(), r"^\w[^\n]*\n$")
        return output.decode().strip()

    def lines(self, got, rows):
        """What the line held, one after the other; on the screen nothing but `rows` is left."""
        screen, expected = Screen(self.COLUMNS), Screen(self.COLUMNS)
        screen.feed(got.decode())
        expected.feed("".join(row + "\r\n" for row in rows))
        self.assertEqual(screen.text(), expected.text())
        begin, *lines = got.decode().split(self.REPLACED)
        self.assertEqual(begin, "")
        return lines

    def test_one_recording(self):
        path = self.recording("a.wav")
        text = self.text(path)
        cases = (([path], b"", " of 3"), (["-"], path.read_bytes(), " of 3"),
                 (["--raw", "s16", "--rate", "16000", "-"], self.sound, ""))
        for arguments, sound, of in cases:
            process, terminal = self.on_terminal(self.transcribe(*arguments), self.COLUMNS, ("stdout", "stderr"))
            process.stdin.write(sound)
            process.stdin.close()
            lines = self.lines(self.read(terminal), [text])
            self.assertEqual(process.wait(120), 0)
            self.assertEqual(lines.pop(), text + "\r\n", "the line is gone before the text comes")
            self.assertEqual(lines[0], f"0{of} s, 0.0 times faster than real time", "told before any work")
            for line in lines:
                self.assertRegex(line, rf"^\d+{of} s, {self.PACE}$")
            done = [int(line.split()[0]) for line in lines]
            self.assertEqual(done, sorted(done))
            self.assertLessEqual(done[-1], 3)

    def test_many_recordings(self):
        """The second transcript goes to a pipe that nobody reads at first, so that the work stands still behind the first one
        for longer than the line may stay as it is: when the second begins, its line must come."""
        a, b = self.recording("a.wav"), self.recording("b.wav")
        text = self.text(a)
        texts = self.out / "texts"
        texts.mkdir()
        os.mkfifo(texts / "b.txt")
        os.utime(texts / "b.txt", (0, 0))  # older than its recording: it is to be written
        arguments = self.transcribe(a, b, "none.wav", "--out-dir", "texts", "--jobs", "1")
        process, terminal = self.on_terminal(arguments, self.COLUMNS, ("stderr",))
        process.stdin.close()
        self.wait_for((texts / "a.txt").exists)
        time.sleep(0.3)  # that has passed since whatever was shown
        pipe = os.open(texts / "b.txt", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, pipe)
        errors = ["syrinx: cannot open 'none.wav': No such file or directory", "syrinx: 1 of 3 files could not be transcribed"]
        lines = self.lines(self.read(terminal), errors)
        self.assertEqual((process.wait(120), process.stdout.read()), (3, b""))
        process.stdout.close()
        self.assertEqual([(texts / "a.txt").read_text(), os.read(pipe, 65536).decode()], [text + "\n"] * 2)
        self.assertEqual(lines.pop(), "".join(line + "\r\n" for line in errors), "the line is gone before an error comes")
        for line in lines:
            self.assertRegex(line, rf"^\d+ %, [01] of 3 files, {self.PACE}: [ab]\.wav$")
        second = [line for line in lines if line.endswith(": b.wav")]
        self.assertRegex(second[0], rf"^50 %, 1 of 3 files, {self.PACE}: b\.wav$")
        shares = [int(line.split()[0]) for line in lines]
        self.assertEqual(shares, sorted(shares))
        self.assertLessEqual(shares[-1], 100)


if __name__ == "__main__":
    unittest.main()
