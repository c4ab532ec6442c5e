"""A control group is written and read by the kernel's own file names.

The files here lie in an ordinary directory, as the kernel lays them out where memory and pids are
delegated; what the kernel does with them is tested where it does (`MEMORY_EXACT` in the sandbox's
own tests).
"""

from pathlib import Path

import pytest

from acp_spec.sdk.sandbox import Guard, Limits, Program, capabilities, run
from acp_spec.sdk.warden import groups
from acp_spec.sdk.warden.order import CGROUP_NONE, Bounds

BOUNDS = Bounds(
    memory_bytes=64 << 20,
    cpu_ms=1_000,
    wall_ms=1_000,
    processes=40,
    open_files=10,
    file_bytes=1,
    scratch_bytes=1,
)
FILES = {
    "cgroup.controllers": "cpu io memory pids\n",
    "cgroup.procs": "12\n13\n",
    "cgroup.kill": "",
    "memory.max": "max\n",
    "memory.swap.max": "max\n",
    "memory.oom.group": "0\n",
    "memory.current": "1048576\n",
    "memory.peak": "2097152\n",
    "memory.events": "low 0\nhigh 0\nmax 5\noom 1\noom_kill 0\noom_group_kill 0\n",
    "pids.max": "max\n",
    "pids.events": "max 0\n",
    "cpu.stat": "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n",
}


@pytest.fixture
def laid_out(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_limits_are_written_where_the_controllers_are_delegated(laid_out: Path) -> None:
    group = groups.Group(str(laid_out), BOUNDS)
    assert group.controllers == {"memory", "pids"}
    told = {name: (laid_out / name).read_text() for name in FILES}
    assert told["memory.max"] == str(64 << 20)
    assert told["memory.swap.max"] == "0"
    assert told["memory.oom.group"] == "1"
    assert told["pids.max"] == "40"


def test_what_it_counts_and_what_it_held_is_read(laid_out: Path) -> None:
    group = groups.Group(str(laid_out), BOUNDS)
    assert group.processes() == [12, 13]
    assert group.cpu_ms() == 2_500
    assert (group.memory_bytes(), group.memory_peak_bytes()) == (1 << 20, 2 << 20)
    assert not group.was_out_of_memory()
    assert not group.was_refused_a_process()
    (laid_out / "memory.events").write_text("oom_kill 3\n")
    (laid_out / "pids.events").write_text("max 1\n")
    assert group.was_out_of_memory()
    assert group.was_refused_a_process()
    group.kill()
    assert (laid_out / "cgroup.kill").read_text() == "1"


def test_without_controllers_it_counts_and_kills_only(laid_out: Path) -> None:
    (laid_out / "cgroup.controllers").write_text("\n")
    (laid_out / "memory.events").write_text("oom_kill 3\n")
    group = groups.Group(str(laid_out), BOUNDS)
    assert group.controllers == frozenset()
    assert (laid_out / "memory.max").read_text() == "max\n"
    assert not group.was_out_of_memory()
    assert group.cpu_ms() == 2_500


def test_where_no_group_can_be_made_the_reason_is_told(tmp_path: Path) -> None:
    assert groups.make(CGROUP_NONE, BOUNDS)[0] is None
    made, why = groups.make(str(tmp_path / "nowhere"), BOUNDS)
    assert made is None
    assert "no group can be made below" in why


EXACT = next(one for one in capabilities() if one.guard is Guard.MEMORY_EXACT)


@pytest.mark.skipif(not EXACT.held, reason=f"needs MEMORY_EXACT ({EXACT.why})")
def test_the_kernel_itself_gives_not_one_page_over_the_limit() -> None:
    limits = Limits(memory_bytes=64 << 20, wall_ms=20_000, cpu_ms=20_000)
    text = "x = bytearray(1 << 30); x[::4096] = b'1' * (1 << 18)"
    ended = run(Program(command=("python3", "-c", text)), limits=limits)
    assert ended.limit is Guard.MEMORY
    assert ended.memory_peak_bytes <= 64 << 20
