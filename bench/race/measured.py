"""A racer's run: what it printed, and the most memory that it held."""
import os
import re
import subprocess
import sys


def run_measured(command, text=""):
    """Its output, and its peak in MB; `text` is its standard input."""
    words = [str(word) for word in command]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    process.stdin.write(text)
    process.stdin.close()
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"'{' '.join(words)[:200]}' failed: {said[-1500:]}")
    return said, usage.ru_maxrss / 1e3


def figure(pattern, text):
    found = re.search(pattern, text)
    if not found:
        sys.exit(f"the peer printed no '{pattern}': {text[-800:]}")
    return float(found[1])
