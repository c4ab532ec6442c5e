"""Whatever lines a log holds, in whatever order: what comes out is the newest of each session."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.stores.copies.manifest import Form
from gateway.stores.copies.tests.copying import (
    exported,
    imported,
    lines_in,
    log_in,
    place_in,
    small,
    write,
)
from gateway.stores.records.tests.sessions import AT_MS
from gateway.stores.trajectory_log import Line, erased_by, head_of

NAMES = ("a", "b", "c", "d")
written = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(1, 4), st.booleans()), min_size=1, max_size=9
)
"""Session, sequence, and whether its content is that of another gateway."""

Written = list[tuple[str, int, bool]]


def _write(data_dir: Path, lines: Written, erased: set[str]) -> None:
    for start in range(0, len(lines), 3):
        some = lines[start : start + 3]
        write(data_dir, *(small(name, seq, tenant="t" * other) for name, seq, other in some))
    for name in sorted(erased):
        log_in(data_dir).erase(name, now_ms=AT_MS)


def _newest(data_dir: Path) -> dict[str, bytes]:
    """Of each session that is not erased: its line of the highest sequence, of equals the last."""
    best = dict[str, tuple[int, bytes]]()
    gone = set[str]()
    for line in lines_in(data_dir):
        if (told := erased_by(line)) is not None:
            gone.add(told.session_id)
        elif (head := head_of(line)) is not None and head.sequence >= best.get(
            head.session_id, (0, b"")
        )[0]:
            best[head.session_id] = head.sequence, line
    return {name: line for name, (_, line) in best.items() if name not in gone}


@settings(max_examples=30, deadline=None)
@given(
    written,
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 4), st.booleans()), max_size=6),
    st.sets(st.sampled_from(NAMES), max_size=2),
    st.sets(st.sampled_from(NAMES), max_size=2),
    st.sampled_from(Form),
)
def test_an_import_leaves_the_newest_of_both_and_again_changes_nothing(
    ours: Written, theirs: Written, erased: set[str], erased_there: set[str], form: Form
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, target, copy = (Path(folder, name) for name in ("from", "into", "copy"))
        _write(source, ours, erased)
        _write(target, theirs, erased_there)
        given_lines = _newest(source)
        before = lines_in(target)
        known = {head: line for line in before if (head := head_of(line)) is not None}
        seen = {line for line in before if head_of(line) is not None}
        buried = {told.session_id for line in before if (told := erased_by(line)) is not None}

        made = exported(source, place_in(copy), form)
        assert made.sessions == len(given_lines)
        report = imported(place_in(copy), target)

        wanted = [
            line
            for name, line in given_lines.items()
            if name not in buried and _is_new(line, known, name)
        ]
        assert sorted(lines_in(target)) == sorted([*before, *wanted])
        counts = (report.imported, report.there_already, report.older, report.erased, report.differ)
        assert sum(counts) == len(given_lines)
        assert report.imported == len(wanted)
        assert report.there_already == sum(1 for line in given_lines.values() if line in seen)

        again = imported(place_in(copy), target)
        assert again.imported == 0
        assert sorted(lines_in(target)) == sorted([*before, *wanted])


def _is_new(line: bytes, known: dict[Line, bytes], name: str) -> bool:
    head = head_of(line)
    assert head is not None
    return all(head.sequence > one.sequence for one in known if one.session_id == name)
