"""`python -m conformance_tests.broken`: writes the tables of `docs/conformance.md` anew."""

import sys
from pathlib import Path

from conformance_tests.broken.table import BEGIN, to_markdown

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def main() -> int:
    """Keep what a person wrote above the mark, replace what stands below."""
    written = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    PAGE.write_text(written + to_markdown(), encoding="utf-8")
    sys.stdout.write(f"gen: {PAGE.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
