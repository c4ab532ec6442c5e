"""`make bench-peers`: the same durable job on other engines and on ours, in turn, five times.

Four steps, each one POST to the same echo component, 20 and 64 jobs in flight. Nothing is pinned:
whoever can use more than one core does.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from figures import Figures, Sample, load_now, machine, table, write
from peer_engines import ENGINES, driven
from peer_home import Unavailable, install
from pinned import HERE, gateway, running
from traffic import four_calls

IN_FLIGHT = (20, 64)
OURS = "acp"


def main() -> None:
    options = _options()
    rounds, seconds = (1, 1.0) if options.quick else (options.rounds, options.seconds)
    peers = list(_installed(options.peers))
    figures = Figures()
    for number in range(1, rounds + 1):
        for name in [OURS, *peers]:
            before = load_now()
            try:
                samples = list(_samples(name, seconds))
            except Unavailable as problem:
                print(f"{name}: no figure in round {number}: {problem}", file=sys.stderr)
                continue
            figures.add(samples, load=(before, load_now()))
            print(f"round {number} of {rounds}: {name}, load {load_now()}", flush=True)
    note = f"median of {rounds}, {seconds:g} s a measurement, engines in turn"
    rows = [*machine(note), *figures.rows()]
    rows += _compared(rows)
    print(table(rows))
    print(write(rows, suffix="-peers", to=options.out))


def _installed(wanted: list[str]) -> Iterator[str]:
    for peer in wanted:
        try:
            install(peer)
        except Unavailable as problem:
            print(f"{peer}: skipped, it cannot be installed: {problem}", file=sys.stderr)
        else:
            yield peer


def _samples(name: str, seconds: float) -> Iterator[Sample]:
    if name == OURS:
        yield from _ours(seconds)
        return
    with running([sys.executable, str(HERE / "echo.py")], core=None) as (_, said):
        for found in driven(name, said["http"], in_flight=IN_FLIGHT, seconds=seconds):
            title = f"{name}, {found['in_flight']} in flight"
            yield Sample(f"{title}: rate", found["per_second"], "1/s")
            yield Sample(f"{title}: p50", found["p50_ms"], "ms")
            yield Sample(f"{title}: p99", found["p99_ms"], "ms")


def _ours(seconds: float) -> Iterator[Sample]:
    with gateway("http", is_pinned=False) as bed:
        four_calls(bed, connections=20, seconds=seconds / 8)
        for in_flight in IN_FLIGHT:
            found = four_calls(bed, connections=in_flight, seconds=seconds)
            title = f"{OURS}, {in_flight} in flight"
            yield Sample(f"{title}: rate", found.per_second, "1/s")
            yield Sample(f"{title}: p50", found.percentile(0.5), "ms")
            yield Sample(f"{title}: p99", found.percentile(0.99), "ms")


def _compared(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Ours over the best of the others, in each width."""
    rates = {str(row["name"]): float(str(row["value"])) for row in rows if row["unit"] == "1/s"}
    figures = Figures()
    for in_flight in IN_FLIGHT:
        title = f"{in_flight} in flight"
        ours = rates.get(f"{OURS}, {title}: rate", 0.0)
        others = [
            rates[f"{peer}, {title}: rate"] for peer in ENGINES if f"{peer}, {title}: rate" in rates
        ]
        if others:
            sample = Sample(f"peers, {title}: ours over the best", ours / max(others), "times")
            figures.add([sample], load=(load_now(), load_now()))
    return figures.rows()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", nargs="*", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--quick", action="store_true", help="one second each, one round")
    parser.add_argument("--out", type=Path, help="the file of results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
