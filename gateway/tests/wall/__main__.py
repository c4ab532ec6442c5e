"""`python -m gateway.tests.wall [NAME ...]` plays scenarios and prints the wall; 1 if it fell."""

import sys

from gateway.tests.wall.scenarios import SCENARIOS
from gateway.tests.wall.scoring import table
from gateway.tests.wall.wall import play_all


def main(names: list[str]) -> int:
    chosen = [one for one in SCENARIOS if not names or one.name in names]
    scores = play_all(chosen)
    sys.stdout.write(table(scores) + "\n")
    fell = [
        one.name
        for scenario, one in zip(chosen, scores, strict=True)
        if bool(one.broken) is not scenario.must_fail
    ]
    sys.stdout.write(f"fell: {', '.join(fell) or 'none'}\n")
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
