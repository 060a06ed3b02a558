#!/usr/bin/env python3
"""Models that come and go, and several in one server.  The server is started here, with a settings file of modules, and
ended behind the run.

  modules.py cycles --kind chat --model smollm2 [--times 200]       a model that is loaded for each request and unloaded
                                                                    behind it (load = "first-use", keep_alive = 0)
  modules.py cycles --kind recognition --model whisper-base
  modules.py together [--seconds 60]                                two voices, a recogniser and a language model
  modules.py together --voices kokoro=af_heart,kokoro=am_michael --recognition-model whisper-base --chat-model smollm2
  modules.py end --model qwen3-tts --listeners 32 [--times 5] --serve --drain-timeout-s 0
                                                                    SIGTERM while so many hear a long text

cycles: fails when a request is lost or answered otherwise than the first one, or when the process grows by more than
--allow-mb from the fifth cycle to the last; its memory is read while the model is unloaded.
together: clients of all modules at once.  Fails when an answer is not the one that a server with that module alone has
given.  A late frame is one that a listener waits for with nothing left to play, a late step the server's own count.
end: how long the process lives behind the signal, the text's drain_timeout_s included.  Fails when it ends with another
status than 0, leaves a child process, or keeps a listener waiting behind its end.
"""

from __future__ import annotations

import argparse
import array
import asyncio
import contextlib
import dataclasses
import http.client
import json
import pathlib
import statistics
import sys
import tempfile
import threading
import time
import wave

import listener
import live
import speaker
from load import ROOT, TEXT, Syrinx, machine, percentile

WARM = 5  # cycles, which may fill caches and pools
PATIENCE_S = 120
TEXTS = f"{TEXT} It stops twice on the way, and nobody has to change. Tickets are sold on board."
CHAT = {"messages": [{"role": "user", "content": "Name three rivers of Europe, and say where they end."}], "temperature": 0}


@dataclasses.dataclass(frozen=True)
class Module:
    kind: str
    model: str
    id: str
    more: str = ""  # lines of the table

    def table(self) -> str:
        return f'\n[[module]]\nkind = "{self.kind}"\nmodel = {json.dumps(self.model)}\nid = "{self.id}"\n{self.more}'


@dataclasses.dataclass
class ModuleTarget(listener.Target):
    """A server's module that speaks."""
    model: str = ""

    def request(self, text: str, name: str, seed: int) -> tuple[bytes, int]:
        body = json.dumps({"input": text, "response_format": "pcm", "seed": seed, "model": self.model})
        return self._post("/v1/audio/speech", "application/json", body, name), 0


@contextlib.contextmanager
def served(syrinx: str, modules: list[Module], extra: list[str]):
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "syrinx.toml"
        missing = [kind for kind in ("speech", "recognition") if all(module.kind != kind for module in modules)]
        config.write_text("".join(f'{kind}_model = ""\n' for kind in missing) + "".join(each.table() for each in modules))
        server = Syrinx(syrinx, ["--config", str(config), "--live-load", "0", *extra], with_wyoming=False)
        try:
            yield server
        finally:
            server.close()


def ask(server: Syrinx, method: str, path: str, body: bytes | None = None, kind: str = "application/json"):
    """Status, headers, body; status 0: no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.target.port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body, {"Content-Type": kind})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, {}, str(error).encode()
    finally:
        connection.close()


def figures(server: Syrinx) -> dict[str, float]:
    found = {}
    for line in ask(server, "GET", "/metrics")[2].decode().splitlines():
        name, _, value = line.rpartition(" ")
        if not line.startswith("#"):
            found[name] = float(value)
    return found


def spread(values: list[float], unit: str) -> str:
    return (f"n {len(values)}, median {statistics.median(values):.1f} {unit}, p99 {percentile(values, 99):.1f}, "
            f"min {min(values):.1f}, max {max(values):.1f}")


# ---- a model on demand -----------------------------------------------------------------------------------------------


def hum(path: pathlib.Path) -> live.Clip:
    """A second and a half of a tone that is no speech, for a recogniser without a --clip."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(array.array("h", (3000 * (i // 40 % 2) for i in range(24000))).tobytes())
    return live.Clip.read(str(path))


def request_of(args: argparse.Namespace, folder: pathlib.Path) -> tuple[str, bytes, str]:
    """Path, body and its type."""
    if args.kind == "recognition":
        body, kind = speaker.form(args.clip or hum(folder / "hum.wav"))
        return "/v1/audio/transcriptions", body, kind
    if args.kind == "speech":
        return "/v1/audio/speech", json.dumps({"input": args.text, "response_format": "pcm", "seed": 1}).encode(), "application/json"
    return "/v1/chat/completions", json.dumps({**CHAT, "max_tokens": 8}).encode(), "application/json"


def substance(kind: str, body: bytes) -> str | bytes:
    if kind == "speech":
        return body
    answer = json.loads(body)
    return answer["text"] if kind == "recognition" else answer["choices"][0]["message"]["content"]


def wait_until_unloaded(server: Syrinx) -> bool:
    end = time.monotonic() + PATIENCE_S
    while json.loads(ask(server, "GET", "/ready")[2])["modules"][0]["state"] != "unloaded":
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def settled_mb(server: Syrinx) -> float:
    """A model is destroyed, which takes a moment, behind the word that it is unloaded: until the memory stands still."""
    alike, last = 0, -1.0
    for _ in range(100):
        now = figures(server)["process_resident_memory_bytes"]
        alike, last = alike + 1 if now == last else 0, now
        if alike == 4:
            break
        time.sleep(0.05)
    return last / 1e6


@dataclasses.dataclass
class Cycles:
    took_ms: list[float] = dataclasses.field(default_factory=list)    # from the request to the end of its answer
    waited_ms: list[float] = dataclasses.field(default_factory=list)  # of it for the model
    rss_mb: list[float] = dataclasses.field(default_factory=list)     # unloaded
    lost: list[str] = dataclasses.field(default_factory=list)
    others: int = 0                                                   # answers that are not the first one


def run_cycles(server: Syrinx, args: argparse.Namespace, path: str, body: bytes, kind: str) -> Cycles:
    found, first, until = Cycles(), None, time.monotonic() + 60 * args.minutes
    for number in range(args.times):
        begun = time.monotonic()
        if begun > until:
            break
        status, headers, answer = ask(server, "POST", path, body, kind)
        took_ms = 1e3 * (time.monotonic() - begun)
        if status != 200:
            found.lost.append(f"cycle {number + 1}: {status} {answer[:200].decode(errors='replace')}")
            time.sleep(1)
        else:
            found.took_ms.append(took_ms)
            found.waited_ms.append(1e3 * float(headers.get("X-Syrinx-Waited", 0)))
            got = substance(args.kind, answer)
            first = got if first is None else first
            found.others += got != first
        if not wait_until_unloaded(server):
            found.lost.append(f"cycle {number + 1}: the model stays loaded")
            break
        found.rss_mb.append(settled_mb(server))
    return found


def cycles(args: argparse.Namespace) -> list[str]:
    module = Module(args.kind, args.model, "module", "\n".join(['load = "first-use"', "keep_alive = 0", *args.table, ""]))
    with tempfile.TemporaryDirectory() as folder, served(args.syrinx, [module], args.serve) as server:
        fresh_mb = settled_mb(server)
        found = run_cycles(server, args, *request_of(args, pathlib.Path(folder)))
        after = figures(server)
    loads = after['syrinx_model_loads_total{model="module"}']
    print(f"{args.kind}, {args.model}: {len(found.took_ms) + len(found.lost)} requests, {len(found.lost)} lost, {found.others} answered otherwise than the first; "
          f"loaded {loads:.0f} times")
    if not found.took_ms or len(found.rss_mb) <= WARM:
        return [*found.lost, f"too little was measured; {WARM + 1} cycles tell something"]
    print(f"request, with loading: {spread(found.took_ms, 'ms')}")
    print(f"of it waiting for the model (X-Syrinx-Waited): {spread(found.waited_ms, 'ms')}")
    start_mb, end_mb = found.rss_mb[WARM - 1], found.rss_mb[-1]
    print(f"memory, unloaded: {fresh_mb:.1f} MB before the first, {start_mb:.1f} behind cycle {WARM}, {end_mb:.1f} at the end, "
          f"grown {end_mb - start_mb:+.1f}; {spread(found.rss_mb[WARM:], 'MB')}")
    faults = list(found.lost)
    if found.others:
        faults.append(f"{found.others} answers are not the first one")
    if end_mb - start_mb > args.allow_mb:
        faults.append(f"the memory has grown by {end_mb - start_mb:.1f} MB, and may by {args.allow_mb:g}")
    return faults


# ---- several at once -------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Answers:
    """Digests of sounds, and words, by a server with one module each."""
    sounds: dict[str, listener.Heard] = dataclasses.field(default_factory=dict)
    words: str = ""
    answer: str = ""


@dataclasses.dataclass
class Load:
    heard: dict[str, list[listener.Heard]] = dataclasses.field(default_factory=dict)
    said: list[speaker.Said] = dataclasses.field(default_factory=list)
    answers: list[str] = dataclasses.field(default_factory=list)
    answer_ms: list[float] = dataclasses.field(default_factory=list)
    faults: list[str] = dataclasses.field(default_factory=list)


def modules_of(args: argparse.Namespace) -> list[Module]:
    found = []
    for number, pair in enumerate(args.voices.split(","), 1):
        model, _, voice = pair.partition("=")
        path = pathlib.Path(voice)
        voice = f'voice = "v"\nvoices = [{json.dumps(f"v={path.resolve()}")}]\n' if path.is_file() else f'voice = {json.dumps(voice)}\n'
        found.append(Module("speech", model, f"voice-{number}", voice))
    return [*found, Module("recognition", args.recognition_model, "ear"), Module("chat", args.chat_model, "talker")]


def save(sound: bytes, path: pathlib.Path) -> live.Clip:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, listener.RATE_HZ, 0, "NONE", ""))
        file.writeframes(sound)
    return live.Clip.read(str(path))


def speech_target(server: Syrinx, module: Module) -> ModuleTarget:
    return ModuleTarget("127.0.0.1", server.target.port, "openai", module.id)


def converse(server: Syrinx, args: argparse.Namespace) -> tuple[str, str]:
    """The answer, or the fault."""
    body = json.dumps({**CHAT, "model": "talker", "max_tokens": args.tokens}).encode()
    status, _, answer = ask(server, "POST", "/v1/chat/completions", body)
    return (substance("chat", answer), "") if status == 200 else ("", f"{status} {answer[:200].decode(errors='replace')}")


def answers_alone(args: argparse.Namespace, modules: list[Module], folder: pathlib.Path) -> tuple[Answers, live.Clip]:
    found, clip = Answers(), args.clip
    for module in modules:
        with served(args.syrinx, [module], args.serve) as server:
            if module.kind == "speech":
                found.sounds[module.id] = asyncio.run(listener.listen(speech_target(server, module), args.text, "alone", 0))
                if found.sounds[module.id].sound == 0:
                    raise SystemExit(f"a text is not spoken by {module.model}")
                if clip is None:
                    body = {"input": TEXT, "response_format": "pcm", "seed": 0, "model": module.id}
                    clip = save(ask(server, "POST", "/v1/audio/speech", json.dumps(body).encode())[2], folder / "clip.wav")
            elif module.kind == "recognition":
                said = asyncio.run(speaker.say(speaker.Ear("transcriptions", "127.0.0.1", server.target.port, clip)))
                if not said.words:
                    raise SystemExit(f"the clip is not heard: {said.status} {said.fault or 'no words'}")
                found.words = said.words
            else:
                found.answer, fault = converse(server, args)
                if fault:
                    raise SystemExit(f"the language model does not answer: {fault}")
    return found, clip


async def all_at_once(server: Syrinx, args: argparse.Namespace, modules: list[Module], alone: Answers, clip: live.Clip) -> Load:
    load, until = Load(), time.monotonic() + args.seconds

    async def listen(module: Module) -> None:
        load.heard[module.id] = await listener.listeners(speech_target(server, module), args.text, args.listeners, args.seconds,
                                                         alone.sounds[module.id].sound, args.ahead, seeds=1)

    async def speak() -> None:
        load.said = await speaker.speakers([speaker.Ear("transcriptions", "127.0.0.1", server.target.port, clip)], args.speakers, args.seconds)

    async def talk() -> None:
        while not load.answer_ms or time.monotonic() < until:
            begun = time.monotonic()
            answer, fault = await asyncio.to_thread(converse, server, args)
            load.answer_ms.append(1e3 * (time.monotonic() - begun))
            load.faults += [f"the language model does not answer: {fault}"] if fault else []
            load.answers.append(answer)

    await asyncio.gather(*(listen(module) for module in modules if module.kind == "speech"), speak(),
                         *(talk() for _ in range(args.talkers)))
    return load


def late_steps(before: dict[str, float], after: dict[str, float], module: Module) -> str:
    def grown(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    label = '{model="%s"}' % module.id
    return f"{grown('syrinx_step_deadline_missed_total' + label):.0f} of {grown('syrinx_step_duration_seconds_count' + label):.0f} steps late"


def report_speech(load: Load, alone: Answers, module: Module, steps: str) -> list[str]:
    heard = load.heard[module.id]
    good = [h for h in heard if h.status == 200 and h.sound > 0]
    gaps = [1e3 * gap for h in good for gap in h.gaps] or [0.0]
    frames = sum(len(h.gaps) + 1 for h in good)
    print(f"{module.id} ({module.model}): {len(heard)} texts, {len(heard) - len(good)} failed; of {frames} frames {sum(h.misses for h in good)} late, "
          f"the worst by {1e3 * max((h.late for h in good), default=0.0):.0f} ms; {steps}")
    print(f"  first sound: {spread([1e3 * h.first for h in good] or [0.0], 'ms')}")
    print(f"  gap of frames: {spread(gaps, 'ms')}")
    others = sum(h.digest != alone.sounds[module.id].digest for h in good)
    return ([f"{len(heard) - len(good)} texts of {module.id} were not spoken"] if len(good) < len(heard) else []) + \
           ([f"{others} of {len(good)} sounds of {module.id} are not the one alone"] if others else [])


def report_others(load: Load, alone: Answers) -> list[str]:
    good = [s for s in load.said if s.status == 200]
    print(f"ear: {len(load.said)} clips, {len(load.said) - len(good)} failed; words behind the request: {spread([1e3 * s.answer for s in good] or [0.0], 'ms')}")
    print(f"talker: {len(load.answers)} answers; {spread(load.answer_ms, 'ms')}")
    faults = list(load.faults)
    faults += [f"a clip was not heard: {s.status} {s.fault}" for s in load.said if s.status != 200]
    if others := [s.words for s in good if s.words != alone.words]:
        faults.append(f"{len(others)} of {len(good)} clips have other words: '{others[0]}', not '{alone.words}'")
    if others := [answer for answer in load.answers if answer and answer != alone.answer]:
        faults.append(f"{len(others)} of {len(load.answers)} conversations have another answer: '{others[0]}', not '{alone.answer}'")
    return faults


def together(args: argparse.Namespace) -> list[str]:
    modules = modules_of(args)
    with tempfile.TemporaryDirectory() as folder:
        alone, clip = answers_alone(args, modules, pathlib.Path(folder))
        print(f"alone: {', '.join(f'{name} {h.sound:.1f} s of sound' for name, h in alone.sounds.items())}; heard '{alone.words}'; answered '{alone.answer}'")
        with served(args.syrinx, modules, args.serve) as server:
            before = figures(server)
            load = asyncio.run(all_at_once(server, args, modules, alone, clip))
            after = figures(server)
    faults = []
    for module in modules:
        if module.kind == "speech":
            faults += report_speech(load, alone, module, late_steps(before, after, module))
    faults += report_others(load, alone)
    print(f"memory: {after['process_resident_memory_bytes'] / 1e6:.0f} MB with all of them")
    return faults


# ---- the end ---------------------------------------------------------------------------------------------------------


class LongListener(threading.Thread):
    """Hears a text until the server ends it."""

    def __init__(self, port: int, seed: int):
        super().__init__(daemon=True)
        self.port, self.body = port, json.dumps({"input": TEXTS * 20, "response_format": "pcm", "seed": seed})
        self.hears, self.ended, self.fault = threading.Event(), 0.0, ""

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("POST", "/v1/audio/speech", self.body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            if reply.status != 200:
                self.fault = f"status {reply.status}"
            while reply.read1(4096):
                self.hears.set()
        except (OSError, http.client.HTTPException) as error:
            self.fault = self.fault or ("" if self.hears.is_set() else str(error))
        finally:
            connection.close()
        self.ended = time.monotonic()
        self.hears.set()


def children_of(process: int) -> list[pathlib.Path]:
    found = (path.read_text().split() for path in pathlib.Path(f"/proc/{process}/task").glob("*/children"))
    return [pathlib.Path(f"/proc/{child}") for children in found for child in children]


def end_once(args: argparse.Namespace, faults: list[str]) -> float:
    """Milliseconds from the signal to the end of the process."""
    slots = Module("speech", args.model, "voice", "\n".join([f"slots = {args.listeners}", *args.table, ""]))
    extra = ["--max-connections-per-address", str(args.listeners + 8), *args.serve]
    with served(args.syrinx, [slots], extra) as server:
        listeners = [LongListener(server.target.port, seed) for seed in range(args.listeners)]
        for each in listeners:
            each.start()
        for each in listeners:
            each.hears.wait(PATIENCE_S)
        early = sum(not each.is_alive() for each in listeners)
        children, begun = children_of(server.process.pid), time.monotonic()
        server.process.terminate()
        status = server.process.wait()
        ended = time.monotonic()
        for each in listeners:
            each.join(5)
    faults += [f"a listener: {each.fault}" for each in listeners if each.fault]
    faults += [f"{early} listeners had ended before the signal"] if early else []
    faults += [f"the process ended with status {status}"] if status != 0 else []
    faults += [f"a child process is left: {child.name}" for child in children if child.exists()]
    faults += ["a listener still waits"] * sum(each.is_alive() for each in listeners)
    last = max((each.ended for each in listeners if each.ended), default=begun)
    print(f"{args.listeners} listeners; the process ended {1e3 * (ended - begun):.0f} ms behind the signal, the last listener's stream {1e3 * (last - begun):.0f} ms")
    return 1e3 * (ended - begun)


def end(args: argparse.Namespace) -> list[str]:
    faults: list[str] = []
    print(f"from the signal to the end: {spread([end_once(args, faults) for _ in range(args.times)], 'ms')}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cycles", "together", "end"))
    parser.add_argument("--syrinx", default=str(ROOT / "build/release/syrinx"))
    parser.add_argument("--text", help="that is spoken")
    parser.add_argument("--clip", type=live.Clip.read, help="WAV file, 16 bits, one channel")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=[], help="the rest: flags of syrinx serve")
    parser.add_argument("--kind", choices=("speech", "recognition", "chat"), default="chat")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--times", type=int, help="200; 1 of end")
    parser.add_argument("--minutes", type=float, default=60, help="cycles end then, however many there were")
    parser.add_argument("--table", action="append", default=[], help="a further line of the module, such as 'threads = 1'")
    parser.add_argument("--allow-mb", type=float, default=5)
    parser.add_argument("--voices", default="kokoro=af_heart,kokoro=am_michael", help="MODEL=VOICE, with commas between")
    parser.add_argument("--recognition-model", default="whisper-base")
    parser.add_argument("--chat-model", default="smollm2")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--ahead", type=float, default=0, help="as load.py")
    parser.add_argument("--listeners", type=int, default=1, help="of each voice, or of the model that ends")
    parser.add_argument("--speakers", type=int, default=1)
    parser.add_argument("--talkers", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=48, help="of an answer")
    args = parser.parse_args()
    args.times = args.times or (1 if args.what == "end" else 200)
    print(machine())
    if args.what == "end":
        faults = end(args)
    elif args.what == "cycles":
        args.text = args.text or "Yes."
        faults = cycles(args)
    else:
        args.text = args.text or TEXTS
        faults = together(args)
    for fault in faults:
        print("error: " + fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
