"""A claim holds, fails with advice, or is unmeasured; the generator's limit is no fault."""

import msgspec
import pytest

from gateway.cli.measure.api_probe import Api
from gateway.cli.measure.claims import (
    Claim,
    Verdict,
    api_claims,
    disk_claims,
    machine_claims,
    way_claims,
)
from gateway.cli.measure.disk_probe import Disk
from gateway.cli.measure.machine_probe import Machine
from gateway.cli.measure.network_probe import Way
from gateway.config.settings import Settings

API = Api(
    opens_per_s=6_000.0,
    open_p50_ms=8.0,
    open_p99_ms=20.0,
    reads_per_s=4_000.0,
    read_p95_ms=2.0,
    read_p99_ms=3.0,
    open_cpu_us=140.0,
    cpu_busy=0.95,
    sync_ms=2.0,
    sessions_per_sync=20.0,
    loop_lag_rest_ms=1.0,
    opened=500,
    left=0,
)
DISK = Disk(
    syncs_per_s=900.0,
    sync_p50_ms=1.1,
    sync_p99_ms=3.0,
    writes_per_s=5_000.0,
    direct=True,
    written_mb_per_s=400.0,
)
MACHINE = Machine(
    cpus=2.0,
    load_1m=0.1,
    memory_total_mb=8_000,
    memory_available_mb=4_000,
    open_files_max=65_536,
    timer_late_p99_ms=0.2,
)
WAY = Way(component="fees@1.0.0", component_id="c", url="http://10.0.0.1:80")


def failing(claims: list[Claim]) -> list[str]:
    assert all(bool(one.advice) == (one.verdict is Verdict.FAILS) for one in claims)
    return [one.claim for one in claims if one.verdict is Verdict.FAILS]


def test_a_gateway_that_does_what_is_promised_fails_nothing() -> None:
    assert failing(list(api_claims(API))) == []


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("open_p50_ms", 11.0, "median"),
        ("open_p99_ms", 31.0, "p99"),
        ("read_p95_ms", 5.1, "state reads"),
        ("loop_lag_rest_ms", 9.0, "lag"),
        ("opens_per_s", 4_000.0, "openings"),
    ],
)
def test_each_promise_is_held_against_its_own_figure(field: str, value: float, word: str) -> None:
    (claim,) = failing(list(api_claims(msgspec.structs.replace(API, **{field: value}))))
    assert word in claim


def test_where_the_generator_gave_out_the_cost_of_an_opening_decides() -> None:
    idle = msgspec.structs.replace(API, opens_per_s=3_000.0, cpu_busy=0.4)
    first, *_ = api_claims(idle)
    assert first.verdict is Verdict.HOLDS
    assert "60% of its core idle" in first.measured
    dear = msgspec.structs.replace(idle, open_cpu_us=300.0)
    assert next(iter(api_claims(dear))).verdict is Verdict.FAILS


def test_where_the_generator_gave_out_long_answers_are_its_own() -> None:
    idle = msgspec.structs.replace(API, opens_per_s=3_000.0, cpu_busy=0.4, open_p50_ms=20.0)
    claims = list(api_claims(idle))
    assert failing(claims) == []
    (median,) = [one for one in claims if "median" in one.claim]
    assert median.verdict is Verdict.UNMEASURED
    assert "another machine" in median.measured


def test_a_gateway_that_tells_no_cpu_time_is_judged_by_what_was_seen() -> None:
    silent = msgspec.structs.replace(API, opens_per_s=3_000.0, cpu_busy=0.0, open_cpu_us=0.0)
    assert next(iter(api_claims(silent))).verdict is Verdict.FAILS


def test_disk_and_machine_are_held_against_promises_and_settings() -> None:
    assert failing([*disk_claims(DISK), *machine_claims(MACHINE, Settings())]) == []
    slow = msgspec.structs.replace(DISK, sync_p50_ms=9.0, written_mb_per_s=5.0)
    small = msgspec.structs.replace(MACHINE, memory_available_mb=100, open_files_max=256)
    assert len(failing([*disk_claims(slow), *machine_claims(small, Settings())])) == 4


def test_a_way_that_leads_nowhere_fails_and_an_attached_one_is_unmeasured() -> None:
    lost = msgspec.structs.replace(WAY, problem="Connection refused")
    attached = msgspec.structs.replace(WAY, url="")
    claims = list(way_claims([lost, attached], Settings()))
    assert [one.verdict for one in claims] == [Verdict.FAILS, Verdict.UNMEASURED]
    assert failing(claims) == ["a way to fees@1.0.0 at http://10.0.0.1:80"]
