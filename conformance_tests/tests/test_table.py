"""`docs/conformance.md` says what stands in the suite, and no more."""

from pathlib import Path

from conformance_tests.broken.table import BEGIN, to_markdown
from conformance_tests.runner.requirements import Party, musts

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_the_page_is_up_to_date_with_the_suite() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert BEGIN + written.partition(BEGIN)[2] == to_markdown(), "run `make gen`"


def test_the_page_states_how_many_statements_there_are() -> None:
    count = len(musts(Party.COMPONENT, Party.SDK)) + len(musts(Party.GATEWAY))
    assert f'"must": {count}' in PAGE.read_text(encoding="utf-8")


def test_no_row_lacks_a_case_or_a_broken_peer() -> None:
    assert "**none**" not in to_markdown()
