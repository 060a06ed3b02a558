"""What a terminal shows of a stream: the line that is being spoken, written over in place, and the lines that stay."""
import errno
import fcntl
import json
import os
import pty
import random
import shutil
import struct
import subprocess
import termios
import unicodedata
import unittest

from program import BINARY, DATA, Program

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


class Terminal(Program):
    def setUp(self):
        super().setUp()
        rng = random.Random(3)
        self.sound = b"".join(struct.pack("<h", int(rng.gauss(0, 3000))) for _ in range(16000 * 3))

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

    def on_terminal(self, arguments, columns):
        """The process, its standard output a terminal that is also its controlling one, and the other side of that."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([BINARY, *arguments], stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE,
                                   cwd=self.out, env=self.environment(), start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.addCleanup(os.close, ours)
        return process, ours

    def read(self, terminal, until=None):
        """What comes until `until` has, or the end."""
        got = b""
        while until is None or until not in got:
            try:
                some = os.read(terminal, 65536)
            except OSError as error:  # how Linux says that nobody has the terminal any more
                if error.errno != errno.EIO:
                    raise
                break
            if not some:
                break
            got += some
        return got

    def shown(self, arguments, columns):
        process, terminal = self.on_terminal(arguments, columns)
        process.stdin.write(self.sound)
        process.stdin.close()
        screen = Screen(columns)
        screen.feed(self.read(terminal).decode())
        self.assertEqual((process.wait(60), process.stderr.read()), (0, b""))
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
        self.assertEqual((process.wait(20), process.stderr.read()), (130, b"syrinx: stopped while reading\n"))
        process.stdin.close()
        process.stderr.close()
        text = got.decode().replace("^C", "")  # the terminal's own echo
        last = text.split("\x1b[K")[-1]
        self.assertRegex(last, r"^\w[^\r\n]*\r\n$")


if __name__ == "__main__":
    unittest.main()
