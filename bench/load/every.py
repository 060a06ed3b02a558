#!/usr/bin/env python3
"""How many clients a server bears at once, of every model and over every protocol that it has: a table and plots.

  every.py OUT --pocket FOLDER --voice FILE --kokoro --whisper whisper-base --transducer FILE.nemo ... --clip CLIP.wav
  every.py OUT ... --peer-speech 'pocket-tts serve --config C --port 8765' --peer-hearing 'whisper-server -m M --port 8766'
  every.py OUT --report

Each cell is `load.py capacity` and then `load.py sweep`, and its rows lie in OUT/MODEL.json; a cell that is whole there is
not measured again, so that a long run may be ended (Ctrl-C) and gone on with.  Nothing else may run meanwhile.  --cpus 0
gives the server one CPU, so that a small model's capacity is its own and not that of the 64 slots.  CLIP.wav is said by the
speakers, 16 bits, one channel, at 24 kHz; realtime hears it as it is, the others what sox makes of it at 16 kHz.
OUT/MODEL.svg has p50, p95 and p99 of first sounds, or of words behind the sound, against the clients; OUT/table.md all rows.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shlex
import subprocess
import sys

from load import saved_rows, sweep_counts

HERE = pathlib.Path(__file__).resolve().parent
SPEAKING = ("openai", "realtime", "wyoming")
HEARING = ("transcriptions", "realtime", "wyoming", "decode", "batch")


def peer_name(command: str) -> str:
    return pathlib.Path(shlex.split(command)[0]).name


def cells(args: argparse.Namespace) -> list[tuple[str, str, list[str]]]:
    """Name of the file, of the server in it, and what load.py is told."""
    found = []
    common = ["--seconds", str(args.seconds)] + (["--cpus", args.cpus] if args.cpus else [])
    for name, more in (*([("pocket-tts", ["--model", args.pocket, "--voice", args.voice])] if args.pocket else []),
                       *([("kokoro", ["--model", "kokoro", "--ahead", "4"])] if args.kokoro else [])):
        found += [(name, f"syrinx {protocol}", [*common, *more, "--protocol", protocol]) for protocol in SPEAKING]
    slow = args.out / "clip16.wav"
    for model in [*args.whisper, *args.transducer]:
        for protocol in HEARING:
            clip = args.clip if protocol in ("realtime", "transcriptions") else slow
            found.append((pathlib.Path(model).stem, f"syrinx {protocol}",
                          [*common, "--model", model, "--precision", "int8", "--protocol", protocol, "--clip", str(clip)]))
    if args.peer_speech:
        found.append(("pocket-tts", peer_name(args.peer_speech), [*common, "--peer", args.peer_speech, "--port", str(args.peer_speech_port)]))
    if args.peer_hearing:
        found.append((pathlib.Path(args.whisper[0]).stem, peer_name(args.peer_hearing),
                      [*common, "--peer", args.peer_hearing, "--port", str(args.peer_hearing_port), "--clip", str(slow)]))
    return found


def has(path: pathlib.Path, server: str, *, whole: bool) -> bool:
    """A capacity of that server, and with `whole` the sweep behind it, too."""
    rows = [row for row in saved_rows(path) if row["server"] == server]
    capacity = next((row["capacity"] for row in rows if "capacity" in row), None)
    return capacity is not None and (not whole or set(sweep_counts(capacity)) <= {row["streams"] for row in rows})


def measure(args: argparse.Namespace) -> None:
    if args.clip:
        subprocess.run(["sox", args.clip, "-r", "16000", args.out / "clip16.wav"], check=True)
    todo = cells(args)
    for number, (name, server, arguments) in enumerate(todo, 1):
        path = args.out / f"{name}.json"
        print(f"[{number}/{len(todo)}] {name}, {server}", flush=True)
        for command in ("capacity", "sweep"):
            if has(path, server, whole=command == "sweep"):
                continue
            if command == "sweep" and not has(path, server, whole=False):
                break
            done = subprocess.run([sys.executable, HERE / "load.py", command, "--name", server, "--json", path, "--syrinx", args.syrinx, *arguments])
            if done.returncode != 0:
                print(f"{name}, {server}: load.py {command} ended with {done.returncode}; the next one", file=sys.stderr, flush=True)
                break


def report(args: argparse.Namespace) -> None:
    lines = []
    for path in sorted(args.out.glob("*.json")):
        # A count that bisection met twice stands with its later row.
        rows = list({(row["server"], row["streams"]): row for row in saved_rows(path)}.values())
        plain = args.out / f"{path.stem}.rows"
        plain.write_text(json.dumps({"rows": rows}))
        done = subprocess.run([sys.executable, HERE / "load.py", "report", "--json", plain, "--plot", path.with_suffix(".svg")],
                              capture_output=True, text=True, check=True)
        plain.unlink()
        lines += [f"## {path.stem}", "", done.stdout]
    (args.out / "table.md").write_text("\n".join(lines))
    print(args.out / "table.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--syrinx", default=str(HERE.parents[1] / "build/release/syrinx"))
    parser.add_argument("--pocket", help="folder of a model of Pocket TTS")
    parser.add_argument("--voice", help="its voice's file")
    parser.add_argument("--kokoro", action="store_true", help="as installed")
    parser.add_argument("--whisper", nargs="*", default=[], metavar="MODEL")
    parser.add_argument("--transducer", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--clip", type=pathlib.Path, help="what the speakers say, 24 kHz")
    parser.add_argument("--cpus", default="", help="of the server")
    parser.add_argument("--seconds", type=float, default=10, help="of each count")
    parser.add_argument("--peer-speech", help="the command of pocket-tts's own server")
    parser.add_argument("--peer-speech-port", type=int, default=8765)
    parser.add_argument("--peer-hearing", help="the command of whisper.cpp's server")
    parser.add_argument("--peer-hearing-port", type=int, default=8766)
    parser.add_argument("--report", action="store_true", help="only makes the table and the plots")
    args = parser.parse_args()
    if (args.whisper or args.transducer or args.peer_hearing) and not args.clip:
        parser.error("what hears needs a --clip")
    if args.pocket and not args.voice:
        parser.error("--pocket needs a --voice")
    if args.peer_hearing and not args.whisper:
        parser.error("--peer-hearing stands beside the first --whisper")
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.report:
        measure(args)
    report(args)


if __name__ == "__main__":
    main()
