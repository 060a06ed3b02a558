"""The program with a pseudo-terminal."""
import errno
import fcntl
import os
import pty
import struct
import subprocess
import termios

from program import BINARY, Program


class PseudoTerminal(Program):
    def on_terminal(self, arguments, columns=80, streams=("stdout",)):
        """The process, these streams of it a terminal that is also its controlling one, and the other side of that."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        ends = {name: theirs if name in streams else subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        process = subprocess.Popen([BINARY, *map(str, arguments)], **ends, cwd=self.out, env=self.environment(),
                                   start_new_session=True, preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.addCleanup(os.close, ours)
        return process, ours

    def read_until(self, terminal, is_enough):
        """The bytes that come until they are enough, or to the end."""
        got = b""
        while not is_enough(got):
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
