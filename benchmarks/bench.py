"""`make bench`: every promised figure, measured five times, with its target and the load around it.

`python benchmarks/bench.py --rows http attach --rounds 3` measures some; `--quick` only shows that
the bench itself works. The gateway has core 0 for itself, components and this program share core 1.
"""

import argparse
from pathlib import Path

from figures import Figures, load_now, machine, table, write
from pinned import stay_beside_the_gateway
from rows import QUICK, ROWS, Size, Stage, stage


def main() -> None:
    options = _options()
    environ = dict(pair.split("=", 1) for pair in options.set)
    size = QUICK if options.quick else Size(seconds=options.seconds, environ=environ)
    rounds = 1 if options.quick else options.rounds
    stay_beside_the_gateway()
    figures = Figures()
    with stage(size) as place:
        for number in range(1, rounds + 1):
            for name in options.rows:
                _measure(name, place, figures=figures)
                print(f"round {number} of {rounds}: {name}, load {load_now()}", flush=True)
    note = f"median of {rounds}, {size.seconds:g} s a measurement"
    rows = [*machine(note), *figures.rows()]
    print(table(rows))
    if set(options.rows) == set(ROWS) or options.out:
        print(write(rows, to=options.out))


def _measure(name: str, place: Stage, *, figures: Figures) -> None:
    before = load_now()
    samples = list(ROWS[name](place))
    figures.add(samples, load=(before, load_now()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="*", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=Size().seconds)
    parser.add_argument("--quick", action="store_true", help="one second a row, one round")
    parser.add_argument("--out", type=Path, help="the file of results [results/<date>.json]")
    parser.add_argument("--set", action="append", default=[], help="ENV=value for the gateway")
    return parser.parse_args()


if __name__ == "__main__":
    main()
