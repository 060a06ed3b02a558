"""A thousand connections that begin a request and stay, ten thousand that come and go, and one who is spoken to."""
import contextlib
import http.client
import os
import resource
import socket
import unittest

from server import LONG, Server

CROWD, PASSERS_BY, ROUNDS = 1000, 10000, 4
DESCRIPTORS = CROWD + 500  # of this process and of the server's, which inherits the limit
RESET = b"\1\0\0\0\0\0\0\0"  # SO_LINGER: on, for no time
# Sanitizers keep memory that has been freed.
KEEPS_FREED = os.environ.get("SYRINX_SANITIZE", "") != ""
MOST_GROWN_BYTES = 1 << 19
TEXT = LONG[:len(LONG) // 2]  # still more sound than sockets and queues hold


class Crowd(Server):
    def setUp(self):
        super().setUp()
        self.allow_descriptors()
        # None of them is refused, and none is late, however slow the machine.
        self.start_server("--max-connections", "65536", "--max-connections-per-address", "65536", "--log", "error",
                          "--request-timeout-s", "3600", "--idle-timeout-s", "3600", "--stalled-reader-s", "3600")
        self.short, self.long = self.spoken(), self.spoken(TEXT)
        self.assertGreater(len(self.long), 3 << 18)
        self.descriptors = self.metric("process_open_fds")

    def allow_descriptors(self):
        soft, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
        unlimited = resource.RLIM_INFINITY
        if soft == unlimited or soft >= DESCRIPTORS:
            return
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard if hard == unlimited else max(hard, DESCRIPTORS)))
        except (ValueError, OSError):
            self.fail(f"this test needs {DESCRIPTORS} open files and the hard limit is {hard}; raise it (ulimit -Hn)")
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)

    def leave(self, connection, resets):
        if resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.close()

    @contextlib.contextmanager
    def listener(self):
        """Of a speech of which there is more than anybody has taken; what is left of it comes as it should."""
        with self.connect(receive_bytes=1 << 15) as connection:
            self.ask(connection, TEXT, response_format="pcm")
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            self.heard = b""
            yield reply
            self.assertEqual(self.free_slots(), 3)  # to here it has lasted
            self.heard += reply.read()
            self.check_same(self.heard, self.long)

    def check_nothing_is_lost(self):
        self.wait_for(lambda: self.free_slots() == 4)
        self.wait_for(lambda: self.metric("process_open_fds") <= self.descriptors)
        self.check_same(self.spoken(), self.short)
        return self.metric("process_resident_memory_bytes")

    def check_memory(self, used):
        """Behind the same thing again and again: what is lost grows each time, what is kept for the next does not."""
        grown = [later - earlier for earlier, later in zip(used, used[1:])]
        if not KEEPS_FREED:
            self.assertLess(min(grown), MOST_GROWN_BYTES, used)

    def come_and_stay(self):
        with contextlib.ExitStack() as crowd, self.listener() as listener:
            for number in range(CROWD):
                connection = crowd.enter_context(self.connect())
                connection.sendall(b"G")
                crowd.callback(self.leave, connection, number % 2 == 0)
                if number % 100 == 99:
                    self.heard += listener.read(1000)
            self.wait_for(lambda: self.metric("process_open_fds") >= self.descriptors + CROWD)
            self.check_same(self.spoken(), self.short)
        return self.check_nothing_is_lost()

    def test_a_thousand_that_send_one_byte_and_stay(self):
        self.check_memory([self.come_and_stay() for _ in range(ROUNDS)])

    def come_and_go(self):
        with self.listener() as listener:
            for number in range(PASSERS_BY // ROUNDS):
                connection = self.connect()
                if number % 3 == 0:
                    connection.sendall(b"G")
                self.leave(connection, number % 2 == 0)
                if number % 100 == 99:
                    self.heard += listener.read(1000)
            self.check_same(self.spoken(), self.short)
        return self.check_nothing_is_lost()

    def test_ten_thousand_that_come_and_go(self):
        self.check_memory([self.come_and_go() for _ in range(ROUNDS)])


if __name__ == "__main__":
    unittest.main()
