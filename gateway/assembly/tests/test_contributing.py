"""The variance of contributions by a process of its own: told, refused, and of one tenant only."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec

from acp_spec.model.trajectory import Trajectory
from gateway.assembly.contributing import contributions_of
from gateway.engine.tests.stage import by_seed
from gateway.insight.tests.records import START_MS, attempt, json_of, record, rewarded
from gateway.runtime.dashboard.variance import Computed, VarianceAsked

DAY_MS = 86_400_000
ASKED = VarianceAsked(
    tenant="default",
    workflow="four",
    from_ms=START_MS,
    middle_ms=START_MS + DAY_MS,
    to_ms=START_MS + 2 * DAY_MS,
)


def session(day: int, number: int, *, tenant: str = "default") -> Trajectory:
    """Two components answer; on the second day the desk is worse, and the reward says so."""
    kind = {"kind": ("easy", "hard")[number % 2]}
    good = by_seed(day, number, "right") < (0.9, 0.6)[day]
    version = f"1.{day}.0"
    said = {"state": "OPEN" if good else "SHUT"}
    desk = attempt(f"a{number}", component_version=version, arguments=json_of(kind), output=said)
    books = attempt(
        f"b{number}",
        step="post",
        component="books",
        component_version=version,
        action="books.post",
        arguments=json_of(said),
        output={"posted": by_seed(day, number, "posted") < 0.5},
    )
    name = f"{tenant}{day}n{number}"
    begun_ms = day * DAY_MS + number
    made = record(name, desk, books, input=json_of(kind), begun_ms=begun_ms, tenant=tenant)
    return rewarded(made, float(good))


def computed(
    folder: Path,
    sessions: Iterable[Trajectory],
    asked: VarianceAsked,
    *,
    hot_days: int | None = None,
) -> Computed:
    lines = [msgspec.json.encode(one) + b"\n" for one in sessions]
    (folder / "records.jsonl").write_bytes(b"".join(lines))

    async def story() -> Computed:
        return await contributions_of(folder, hot_days=hot_days)(asked)

    return asyncio.run(story())


def test_the_variance_is_told_of_the_tenant_that_asks_and_of_nobody_else(tmp_path: Path) -> None:
    own = [session(day, number) for day in (0, 1) for number in range(60)]
    foreign = [session(day, number, tenant="bank") for day in (0, 1) for number in range(60)]
    alone = computed(tmp_path, own, ASKED)
    assert alone.value is not None
    assert not alone.reason
    worse = [msgspec.structs.replace(one, rewards=own[0].rewards) for one in foreign]
    assert computed(tmp_path, own + worse, ASKED) == alone


def test_where_nothing_can_be_told_it_says_why(tmp_path: Path) -> None:
    unjudged = [rewarded(session(day, 1)) for day in (0, 1)]
    assert computed(tmp_path, unjudged, ASKED).reason == "a window has no session with a reward"


def test_windows_that_may_reach_into_the_archive_are_not_told_of_by_half(tmp_path: Path) -> None:
    own = [session(day, number) for day in (0, 1) for number in range(60)]
    assert "archive.hot_days (1)" in computed(tmp_path, own, ASKED, hot_days=1).reason
    assert computed(tmp_path, own, ASKED, hot_days=2).value is not None
