"""How many calls of functions a four-call session costs, by function and by file.

Unlike a rate, the number does not depend on what else the machine does, so two versions can be
compared under any load. `--out FILE` keeps the calls by function, `--against FILE` prints what
changed since then. The last line is JSON: calls in all, and by file.
"""

import argparse
import json
import os
import pstats
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

from pinned import Bed, gateway, stay_beside_the_gateway
from traffic import four_calls

CONNECTIONS = 20
SESSIONS = 2_000
WARM_SESSIONS = 400
PROGRAM = str(Path(__file__).with_name("counted_gateway.py"))
ROOT = f"{Path(__file__).parent.parent}/"

Calls = dict[str, float]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--transport", choices=("http", "grpc", "attach"), default="http")
    asked.add_argument("--top", type=int, default=25, metavar="N")
    asked.add_argument("--out", type=Path, metavar="FILE")
    asked.add_argument("--against", type=Path, metavar="FILE")
    options = asked.parse_args()
    calls = counted(options.transport)
    before: Calls = json.loads(options.against.read_text()) if options.against else {}
    changes = {name: calls.get(name, 0.0) - before.get(name, 0.0) for name in {*calls, *before}}
    ordered = sorted(changes, key=lambda name: -abs(changes[name]))
    for name in ordered[: options.top]:
        print(f"{changes[name]:+9.1f}  now {calls.get(name, 0.0):7.1f}  {name}")
    if options.out:
        options.out.write_text(json.dumps(calls))
    files: Counter[str] = Counter()
    for name, count in calls.items():
        files[name.split(":")[0]] += round(count)
    print(json.dumps({"calls": round(sum(calls.values())), "by_file": dict(files.most_common(40))}))


def counted(transport: str) -> Calls:
    """Calls a session, by function."""
    stay_beside_the_gateway()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "profile"
        environ = {"BENCH_PROFILE": str(path)}
        with gateway(transport, environ=environ, program=(PROGRAM,)) as bed:
            four_calls(bed, connections=CONNECTIONS, sessions=WARM_SESSIONS)
            os.kill(bed.pid, signal.SIGUSR1)
            four_calls(bed, connections=CONNECTIONS, sessions=SESSIONS)
            return _written(bed, path)


def _written(bed: Bed, path: Path) -> Calls:
    os.kill(bed.pid, signal.SIGUSR2)
    while not path.exists():
        time.sleep(0.1)
    calls: Calls = {}
    # cProfile's own table: (file, line, function) -> (primitive calls, calls, ...)
    for (file, _, function), row in pstats.Stats(str(path)).stats.items():  # type: ignore[attr-defined]
        name = f"{file.removeprefix(ROOT)}:{function}"
        calls[name] = calls.get(name, 0.0) + row[1] / SESSIONS
    return calls


if __name__ == "__main__":
    main()
