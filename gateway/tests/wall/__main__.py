"""`python -m gateway.tests.wall [NAME ...]` plays scenarios and prints the wall; 1 if it fell.

2 for a name that no scenario has: a wall of nothing would stand.
"""

import sys

from gateway.tests.wall.scenarios import SCENARIOS
from gateway.tests.wall.scoring import table
from gateway.tests.wall.wall import play_all


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - {one.name for one in SCENARIOS})
    if unknown:
        known = ", ".join(one.name for one in SCENARIOS)
        sys.stderr.write(f"there is no scenario {', '.join(unknown)}; there are: {known}\n")
        return 2
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
