"""A server asked over Wyoming, by its own package and by plain sockets; shared by its tests."""
import asyncio
import json
import socket
import threading
import time

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error

from server import Server


class Wyoming(Server):
    def start_wyoming(self, *arguments, **options):
        self.start_server("--wyoming-port", "0", *arguments, **options)

    def client(self):
        return AsyncTcpClient("127.0.0.1", self.wyoming_port, connect_timeout=60, read_timeout=120)

    def run_with_client(self, action):
        async def run():
            async with self.client() as client:
                return await action(client)

        return asyncio.run(run())

    async def hear(self, client, last):
        """The sound up to an event of the class `last`; its chunks must say what is so."""
        sound, begun = b"", False
        while True:
            event = await client.read_event()
            self.assertIsNotNone(event, "the server has closed the connection")
            if AudioStart.is_type(event.type):
                begun = True
            elif AudioChunk.is_type(event.type):
                chunk = AudioChunk.from_event(event)
                self.assertTrue(begun)
                self.assertEqual((chunk.rate, chunk.width, chunk.channels), (24000, 2, 1))
                self.assertEqual(chunk.timestamp, len(sound) // 2 * 1000 // 24000)
                sound += chunk.audio
            elif last.is_type(event.type):
                return sound
            else:
                self.assertTrue(AudioStop.is_type(event.type), event)

    async def refused(self, client, event):
        """The error's text and code; the connection must be closed behind it."""
        await client.write_event(event.event())
        answer = await client.read_event()
        self.assertTrue(Error.is_type(answer.type), answer)
        self.assertIsNone(await client.read_event())
        error = Error.from_event(answer)
        return error.text, error.code

    def raw(self, sent, ends=False):
        """What a plain client hears until the server closes; one that `ends` says that nothing more will come."""
        with socket.create_connection(("127.0.0.1", self.wyoming_port), timeout=120) as connection:
            sender = threading.Thread(target=self.send_all, args=(connection, sent, ends))
            sender.start()
            sender.join(1)  # what the system does not keep is read meanwhile
            answer = b""
            while part := connection.recv(65536):
                answer += part
            sender.join()
            return answer

    @staticmethod
    def send_all(connection, sent, ends):
        try:
            connection.sendall(sent)
            if ends:
                connection.shutdown(socket.SHUT_WR)
        except ConnectionError:  # it has said all that it has to say
            pass

    def keep_saying(self, opening, part):
        """What a client hears of whom one such part comes after the other and nothing of an end, until the server closes."""
        answer, end = b"", time.monotonic() + 120
        with socket.create_connection(("127.0.0.1", self.wyoming_port), timeout=0.1) as connection:
            connection.sendall(opening)
            while time.monotonic() < end:
                try:
                    connection.sendall(part)
                except OSError:  # it has closed; what it said before is still there
                    pass
                try:
                    if not (got := connection.recv(65536)):
                        break
                    answer += got
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
        return answer

    def check_artifact(self, artifact, name, description, maker, url):
        """What programs, models and voices tell alike, with the version that the program itself tells."""
        version = self.run_it("--version")[1].decode().split()[1]
        self.assertEqual((artifact.name, artifact.description, artifact.version, artifact.installed),
                         (name, description, version, True))
        self.assertEqual((artifact.attribution.name, artifact.attribution.url), (maker, url))

    @staticmethod
    def events(answer):
        """Types, data and payloads of what was heard."""
        while answer:
            line, _, answer = answer.partition(b"\n")
            head = json.loads(line)
            ends = head.get("data_length", 0), head.get("data_length", 0) + head.get("payload_length", 0)
            yield head["type"], json.loads(answer[:ends[0]] or b"{}"), answer[ends[0]:ends[1]]
            answer = answer[ends[1]:]

    @staticmethod
    def line(event):
        return json.dumps(event.event().to_dict()).encode() + b"\n"

    def wait_until_free(self):
        self.wait_for(lambda: self.metric('syrinx_slots{model="english",state="busy"}') == 0)
