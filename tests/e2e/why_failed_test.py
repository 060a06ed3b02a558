"""scripts/why_failed on logs such as ctest, gtest, unittest, libFuzzer and compilers write: what did not hold is told, and no more than a screen."""
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/why_failed"
PASSED = "".join(f"      Start {i}: Some.Test{i}\n{i}/400 Test #{i}: Some.Test{i} ........   Passed    0.01 sec\nINFO error: of one that passed\n" for i in range(400))
GTEST = """ 7/400 Test #7: Numbers.AddUp ....................***Failed    0.02 sec
Running main() from gmock_main.cc
[ RUN      ] Numbers.AddUp
numbers_test.cc:12: Failure
Expected equality of these values:
  sum
    Which is: 4
  5
[  FAILED  ] Numbers.AddUp (0 ms)

"""
PYTHON = """ 8/400 Test #8: server ....................***Failed    9.00 sec
...F..
======================================================================
FAIL: test_it (__main__.Speech.test_it)
Of a sentence.
----------------------------------------------------------------------
Traceback (most recent call last):
  File "server_test.py", line 154, in test_it
    self.assertEqual(status, 200)
    ~~~~~~~~~~~~~~~~^^^^^^^^^^^^^
AssertionError: 503 != 200 : %s

----------------------------------------------------------------------
Ran 8 tests in 63.434s

FAILED (failures=1)

""" % ("x" * 5000)
KILLED = " 9/400 Test #9: stuck ....................***Timeout  600.00 sec\n" + "".join(f"line {i}\n" for i in range(100)) + "\n"
LIST = "\nThe following tests FAILED:\n\t  7 - Numbers.AddUp (Failed)\n\t  8 - server (Failed)\n\t  9 - stuck (Timeout)\nErrors while running CTest\n"
FUZZ = """==12==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1
READ of size 1 at 0x1 thread T0
    #0 0x1 in parse(char const*) /src/parse.cc:10:3
SUMMARY: AddressSanitizer: heap-buffer-overflow /src/parse.cc:10:3 in parse(char const*)
Base64: QUJD
error: fuzz target json failed after 12 runs; the input is in build/asan/fuzz/found/json
"""


class WhyFailed(unittest.TestCase):
    def told(self, log):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(log)
            file.flush()
            done = subprocess.run([SCRIPT, file.name], capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        self.assertLessEqual(len(lines), 150)
        self.assertLessEqual(max(map(len, lines)), 400)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_of_tests_what_did_not_hold(self):
        told = self.told(PASSED + GTEST + PASSED + PYTHON + PASSED + KILLED + PASSED + LIST + "the end of all\n" * 300)
        for part in ("7 - Numbers.AddUp (Failed)", "8 - server (Failed)", "9 - stuck (Timeout)", "numbers_test.cc:12: Failure", "Which is: 4",
                     "FAIL: test_it", "line 154, in test_it", "AssertionError: 503 != 200", "Test #9: stuck", "line 99", "the end of all"):
            self.assertIn(part, told)
        for part in ("of one that passed", "line 50\n", "^^^^", "====", "----"):
            self.assertNotIn(part, told)

    def test_each_of_many_has_some_lines(self):
        told = self.told("".join(GTEST.replace("Numbers.", f"Numbers{i}.").replace("#7", f"#{i}") for i in range(9)) + LIST)
        for i in range(9):
            self.assertIn(f"Test #{i}: Numbers{i}.AddUp", told)
        self.assertGreaterEqual(told.count("numbers_test.cc:12: Failure"), 9)
        self.told(GTEST * 500 + LIST * 50)

    def test_of_other_tools_their_errors(self):
        told = self.told("note: a line\n" * 500 + FUZZ + "note: a line\n" * 500)
        for part in ("heap-buffer-overflow", "in parse(char const*)", "Base64: QUJD", "fuzz target json failed"):
            self.assertIn(part, told)
        told = self.told("[1/2] Building\n" * 500 + "FAILED: a.o\ng++ a.cc\na.cc:3:5: error: 'x' was not declared\n    3 |   x;\n" + "[2/2]\n" * 100)
        for part in ("FAILED: a.o", "a.cc:3:5: error: 'x' was not declared", "3 |   x;"):
            self.assertIn(part, told)


if __name__ == "__main__":
    unittest.main()
