"""What packaging/ holds, checked by the programs that it is for, and what the server tells the manager of services."""
import fcntl
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import unittest
import xml.etree.ElementTree

from program import BINARY, Program
from server import MODEL, Server

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = SOURCE / "packaging"


def output_of(*command, **options):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)


class Notify(Server):
    def hear(self, name):
        """A manager's socket of that name, and how the server is to be told of it."""
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.settimeout(120)
        manager.bind(name)
        self.addCleanup(manager.close)
        return manager

    def test_a_manager_hears_that_it_is_ready_and_that_it_ends(self):
        path = str(self.folder / "notify")
        abstract = f"\0syrinx-test-{os.getpid()}"
        for name in (path, abstract):
            manager = self.hear(name)
            self.start_server(variables={"NOTIFY_SOCKET": name.replace("\0", "@")})
            self.assertEqual(manager.recv(1000).split(b"\n")[0], b"READY=1")
            self.assertEqual(self.request("GET", "/ready")[0], 200)
            self.end_server()
            self.assertEqual(manager.recv(1000).split(b"\n")[0], b"STOPPING=1")

    def test_a_busy_manager_hears_it_too(self):
        manager = self.hear(str(self.folder / "notify"))
        full = False
        while not full:  # one's own buffer may be full before the manager's queue is
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
                other.setblocking(False)
                sent = 0
                try:
                    while True:
                        other.sendto(b"WATCHDOG=1", manager.getsockname())
                        sent += 1
                except BlockingIOError:
                    full = sent == 0
        self.start_server(variables={"NOTIFY_SOCKET": manager.getsockname()})
        time.sleep(2)  # it waits for room
        heard = b"WATCHDOG=1"
        while heard == b"WATCHDOG=1":
            heard = manager.recv(1000)
        self.assertEqual(heard.split(b"\n")[0], b"READY=1")

    @staticmethod
    def catches(process, number):
        """It has a handler of that signal."""
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        return int(re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)[1], 16) >> (number - 1) & 1

    def test_who_is_to_end_while_it_loads_is_never_ready(self):
        manager = self.hear(str(self.folder / "notify"))
        told, tells = os.pipe()  # full: it gets no further than its first words, that it loads
        os.write(tells, b"x" * fcntl.fcntl(tells, fcntl.F_SETPIPE_SZ, 4096))
        server = self.start("serve", "--port", "0", *MODEL, stderr=tells, variables={"NOTIFY_SOCKET": manager.getsockname()})
        os.close(tells)
        with server, open(told, "rb") as words:
            self.wait_for(lambda: self.catches(server, signal.SIGTERM))
            server.terminate()
            self.assertNotIn(b" at http://", words.read())
            self.assertEqual(server.wait(500), 0)
        self.assertEqual(manager.recv(1000).split(b"\n")[0], b"STOPPING=1")

    def test_a_manager_that_does_not_hear_stops_nobody(self):
        for name in (str(self.folder / "nobody"), "@" + "x" * 200):
            self.start_server(variables={"NOTIFY_SOCKET": name})
            self.assertTrue(self.spoken())
            self.end_server()
            self.assertIn("NOTIFY_SOCKET", "".join(self.lines))


class SystemdUnit(Program):
    def unit(self):
        """As it is installed, but for the place of the program, which is this build's."""
        text = (PACKAGING / "systemd/syrinx.service.in").read_text()
        self.assertIn("ExecStart=@SYRINX_BINDIR@/syrinx serve ", text)
        path = self.folder / "syrinx.service"
        path.write_text(text.replace("@SYRINX_BINDIR@", str(pathlib.Path(BINARY).parent)))
        return path

    def test_systemd_finds_no_fault(self):
        done = output_of("systemd-analyze", "verify", "--man=no", self.unit())
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_little_of_the_machine_is_exposed(self):
        done = output_of("systemd-analyze", "security", "--offline=true", "--threshold=15", self.unit())
        self.assertEqual(done.returncode, 0, done.stdout[-300:] + done.stderr)

    def test_the_service_may_end_within_its_time(self):
        """TimeoutStopSec is longer than drain_timeout_s, LimitNOFILE more than max_connections."""
        unit = (PACKAGING / "systemd/syrinx.service.in").read_text()
        settings = self.run_it("serve", "--print-config")[1].decode()

        def number(text, name):
            return float(re.search(rf"^{name} ?= ?([\d.]+)$", text, re.MULTILINE)[1])

        self.assertGreater(number(unit, "TimeoutStopSec"), number(settings, "drain_timeout_s") + 10)
        self.assertGreater(number(unit, "LimitNOFILE"), 2 * number(settings, "max_connections"))
        for setting in ("KillMode=mixed", "OOMPolicy=continue"):  # else its end, or theirs, is that of the decoders
            self.assertIn(f"\n{setting}\n", unit)

    def test_a_fault_of_the_settings_is_not_tried_again(self):
        unit = (PACKAGING / "systemd/syrinx.service.in").read_text()
        status, _, errors = self.run_it("serve", "--check")  # no model has been pulled
        self.assertIn("is not installed", errors)
        self.assertIn(str(status), re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)[1].split())


class Heads(Program):
    def test_what_they_pull_is_what_the_settings_ask_for(self):
        settings = self.run_it("serve", "--print-config")[1].decode()
        models = re.findall(r'^(?:speech|recognition)_model = "(.+)"$', settings, re.MULTILINE)
        self.assertEqual(len(models), 2)
        container = (PACKAGING / "container/Containerfile").read_text()
        self.assertEqual(re.findall(r"^#.* syrinx pull (\S+)$", container, re.MULTILINE), models)
        unit = (PACKAGING / "systemd/syrinx.service.in").read_text()
        self.assertEqual(re.search(r"^# +for model in (.*); do$", unit, re.MULTILINE)[1].split(), models)


class AvahiFile(unittest.TestCase):
    def test_it_announces_the_port_of_the_documentation(self):
        """Its elements in the order of Avahi's DTD, which is not there to be asked."""
        group = xml.etree.ElementTree.parse(PACKAGING / "avahi/syrinx.service").getroot()
        self.assertEqual((group.tag, [each.tag for each in group]), ("service-group", ["name", "service"]))
        self.assertEqual([(each.tag, each.attrib) for each in group[1]], [("type", {}), ("port", {})])
        guide = (SOURCE / "docs/server.md").read_text()
        self.assertEqual([each.text for each in group[1]],
                         [re.search(r"`(_wyoming\._tcp)\.local\.`", guide)[1], re.search(r"--wyoming-port (\d+)`", guide)[1]])


class HaproxyFile(Program):
    def test_haproxy_finds_no_fault(self):
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        made = output_of("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                         "-days", "2", "-subj", "/CN=localhost")
        self.assertEqual(made.returncode, 0, made.stderr)
        both = self.folder / "both.pem"
        both.write_text(certificate.read_text() + key.read_text())
        variables = {"SYRINX_BIND": "127.0.0.1:8443", "SYRINX_CERTIFICATE": str(both), "SYRINX_A": "127.0.0.1:8081",
                     "SYRINX_B": "127.0.0.1:8082", "SYRINX_C": "127.0.0.1:8083"}
        path = os.environ["PATH"] + ":/usr/sbin"
        done = output_of("haproxy", "-c", "-f", PACKAGING / "scale/haproxy.cfg", env={**os.environ, **variables, "PATH": path})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("WARNING", done.stderr)


class ContainerFile(Program):
    def context(self):
        """What the image is made of, as .dockerignore lets it in: no secrets, no build folders, whose paths are another machine's."""
        lines = [line for line in (SOURCE / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(lines[0], "*")
        context = self.folder / "context"
        for line in lines[1:]:
            self.assertEqual(line[0], "!", line)
            from_path, to_path = SOURCE / line[1:], context / line[1:]
            to_path.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if from_path.is_dir() else shutil.copy)(from_path, to_path)
        self.assertEqual({path.name for path in context.iterdir()} & {"build", "out", ".git"}, set())
        return context

    @staticmethod
    def commands():
        """To configure, to build and to install, as the image is made."""
        text = (PACKAGING / "container/Containerfile").read_text().replace("\\\n", " ")
        return [shlex.split(command) for command in re.search(r"^RUN (cmake .*)$", text, re.MULTILINE)[1].split("&&")]

    @staticmethod
    def made(folder, targets):
        """All that these targets have Ninja make."""
        commands = {}
        for outputs, needs in re.findall(r"^build (.*?): \S+(.*)$", (folder / "build.ninja").read_text(), re.MULTILINE):
            outputs, needs = (names.replace("|", " ").split() for names in (outputs, needs))
            commands.update(dict.fromkeys(outputs, (outputs, needs)))
        found, wanted = set(), list(targets)
        while wanted:
            name = wanted.pop()
            if name in commands and name not in found:
                found.update(commands[name][0])
                wanted += commands[name][1]
        return found

    def check_done(self, command, folder, *arguments):
        done = output_of(*command, *arguments, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        return done.stdout

    def test_its_context_is_what_the_build_needs_and_no_more(self):
        """CMake looks for every source file, and Ninja for whatever the commands read that it would run."""
        context = self.context()
        configure, build, _ = self.commands()
        self.check_done(configure, context)
        # Under another name: of build.ninja itself a dry run would read the lists of files anew, and get no further.
        shutil.copy(context / "build/release/build.ninja", context / "build/release/dry.ninja")
        would_run = self.check_done(build, context, "--", "-f", "dry.ninja", "-n", "-v")
        for script, pattern in (("EmbedPage", "web/*"), ("EmbedFiles", "catalogue/*")):
            given = re.search(rf'-DFILES=([^" ]*)"? -P \S*/{script}\.cmake', would_run)[1].split("|")
            self.assertEqual(given, sorted(str(context / path.relative_to(SOURCE)) for path in SOURCE.glob(pattern)))

    def test_what_it_installs_it_has_built(self):
        """With a file in the place of whatever would have been built."""
        context = self.context()
        configure, build, install = self.commands()
        self.check_done(configure, context)
        targets = build[build.index("--target") + 1:] if "--target" in build else ["all"]
        folder = context / "build/release"
        for path in (folder / name for name in self.made(folder, targets)):
            if not path.exists() and path.suffix != ".o":
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy("/bin/true", path)  # which can be stripped
        prefix = self.folder / "prefix"
        install[install.index("--prefix") + 1] = prefix
        self.check_done(install, context)
        for name in ("bin/syrinx", "share/man/man1/syrinx.1", "share/bash-completion/completions/syrinx", "lib/libsyrinx.so",
                     "share/doc/syrinx/third_party.md"):
            self.assertTrue((prefix / name).exists(), name)
        unit = (prefix / "lib/systemd/system/syrinx.service").read_text()
        self.assertIn(f"ExecStart={prefix}/bin/syrinx serve ", unit)
        self.assertIn(f" {prefix}/bin/syrinx pull ", unit)

    def test_without_the_page_nothing_is_built(self):
        context = self.context()
        shutil.rmtree(context / "web")
        done = output_of(*self.commands()[0], cwd=context)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("web/index.html is missing, and with it the server's page", re.sub(r"\s+", " ", done.stderr))

    def test_it_installs_the_libraries_that_the_program_needs(self):
        """Of those that the program itself names, whatever these need in turn."""
        needed = re.findall(r"NEEDED +(\S+)", output_of("objdump", "-p", BINARY).stdout)
        self.assertIn("libstdc++.so.6", needed)
        at = dict(re.findall(r"(\S+) => (\S+)", output_of("ldd", BINARY).stdout))
        packages = set()
        for library in needed:
            if library in at:
                path = os.path.realpath(at[library])
                owner = output_of("dpkg", "-S", path, path.removeprefix("/usr")).stdout  # as the package calls it
                self.assertTrue(owner, library)
                packages.add(owner.partition(":")[0])
        packages -= {"libc6", "libgcc-s1"}  # of every image
        text = (PACKAGING / "container/Containerfile").read_text()
        runtime = text[text.rindex("FROM "):]
        installed = set(re.search(r"--no-install-recommends ([^&]*)&&", runtime)[1].replace("\\", "").split())
        # Some linkers have the program name what its libraries need, too; these packages come with those that need them.
        brought = output_of("dpkg-query", "--show", "--showformat", "${Depends}, ", *sorted(installed & packages)).stdout
        brought = {name.split()[0].partition(":")[0] for name in brought.split(",") if name.strip()}
        self.assertEqual(packages - (brought - installed), installed - {"ca-certificates", "libavformat59"})  # loaded at run time


if __name__ == "__main__":
    unittest.main()
