"""The table requirement x case x broken peer as Markdown, for `docs/conformance.md`."""

from collections.abc import Iterator

from conformance_tests.broken.matrix import Matrix, Row


def to_markdown(matrix: Matrix) -> str:
    """The rows as one table; what was run is not in it, so that it changes only with the suite."""
    return "\n".join(_lines(matrix)) + "\n"


def _lines(matrix: Matrix) -> Iterator[str]:
    yield "| requirement | binds | cases | the broken peer | fails with it |"
    yield "|---|---|---|---|---|"
    yield from (_line(row) for row in matrix.rows)


def _line(row: Row) -> str:
    peer = row.peer
    does = peer.does if peer else "**none**"
    along = f"{', '.join(peer.fails_with)}: {peer.why_with}" if peer and peer.fails_with else ""
    cases = ", ".join(row.cases) or "**none**"
    return f"| {row.requirement.id} | {row.party.value} | {cases} | {does} | {along} |"
