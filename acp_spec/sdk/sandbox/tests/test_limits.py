"""Each limit is met by a program that exceeds it, and named; the whole tree counts, and ends."""

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_spec.sdk.sandbox import Guard, Limits, Program, run
from acp_spec.sdk.sandbox.tests.running import (
    AMPLE,
    MIB,
    PROGRAMS,
    python,
    shell,
)

TOUCH = "taken = bytearray({mib} * 1024 * 1024); taken[::4096] = b'x' * len(taken[::4096])"


def with_limit(**stated: int) -> Limits:
    return dataclasses.replace(AMPLE, **stated)  # type: ignore[arg-type]


@pytest.fixture(params=["auto", "off"])
def cgroup(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of counting: by a control group where one can be made, and by sampling alone."""
    monkeypatch.setenv("ACP_SANDBOX_CGROUP", request.param)


@pytest.mark.usefixtures("cgroup")
def test_memory_over_the_limit_ends_the_program() -> None:
    ended = python(TOUCH.format(mib=600), limits=with_limit(memory_bytes=64 * MIB))
    assert ended.limit is Guard.MEMORY
    assert not ended.succeeded


@pytest.mark.usefixtures("cgroup")
def test_memory_is_that_of_the_whole_tree() -> None:
    text = f"""
import os, time
for _ in range(4):
    if os.fork() == 0:
        {TOUCH.format(mib=40)}
        time.sleep(60)
time.sleep(60)
"""
    ended = python(text, limits=with_limit(memory_bytes=100 * MIB))
    assert ended.limit is Guard.MEMORY


@pytest.mark.usefixtures("cgroup")
def test_pages_that_a_family_shares_count_once() -> None:
    text = f"""
import os, time
{TOUCH.format(mib=60)}
children = [os.fork() or (time.sleep(0.5), os._exit(0)) for _ in range(4)]
for _ in children: os.wait()
print("{{}}")
"""
    assert python(text, limits=with_limit(memory_bytes=160 * MIB)).succeeded


@pytest.mark.usefixtures("cgroup")
def test_memory_in_files_that_lie_nowhere_counts_and_once_only() -> None:
    """Nobody's resident memory grows by a memfd that is written and not mapped."""
    text = """
import os, time
kept = [os.memfd_create(str(n)) for n in range(20)]
for one in kept:
    for _ in range(30): os.write(one, b"x" * 1_000_000)
time.sleep(60)
"""
    assert python(text, limits=with_limit(memory_bytes=100 * MIB)).limit is Guard.MEMORY
    mapped = """
import mmap, os, time
one = os.memfd_create("one")
for _ in range(60): os.write(one, b"x" * 1_000_000)
held = mmap.mmap(one, 60_000_000)
assert sum(held[::4096]) > 0
time.sleep(0.3)
"""
    assert python(mapped, limits=with_limit(memory_bytes=100 * MIB)).succeeded


def test_memory_of_a_c_program_is_held(tmp_path: Path, needs: Callable[[str], Path]) -> None:
    needs("cc")
    built = tmp_path / "built"
    built.mkdir(mode=0o755)
    command = ["cc", "-O1", "-o", str(built / "hungry"), str(PROGRAMS / "hungry.c")]
    subprocess.run(command, check=True)
    (built / "hungry").chmod(0o755)

    def hungry(mib: int) -> Program:
        return Program(command=(str(built / "hungry"), str(mib)), reads=(built,))

    small = with_limit(memory_bytes=100 * MIB)
    assert run(hungry(60), limits=small).output == b'{"taken": 60}\n'
    assert run(hungry(4_000), limits=small).limit is Guard.MEMORY


def test_java_runs_under_the_default_limits_and_is_held_by_its_resident_memory(
    needs: Callable[[str], Path],
) -> None:
    needs("javac")

    def hungry(mib: int) -> Program:
        source = str(PROGRAMS / "Hungry.java")
        return Program(command=("java", "-Xmx2g", source, str(mib)), reads=(PROGRAMS,))

    enough = dataclasses.replace(Limits(), wall_ms=AMPLE.wall_ms, cpu_ms=AMPLE.cpu_ms)
    assert run(hungry(16), limits=enough).output == b'{"taken": 16}\n'
    over = run(hungry(1_500), limits=enough)
    assert over.limit is Guard.MEMORY, over


def test_node_runs_under_the_default_limits_and_is_held_by_its_resident_memory(
    needs: Callable[[str], Path],
) -> None:
    needs("node")

    def hungry(mib: int) -> Program:
        source = str(PROGRAMS / "hungry.js")
        return Program(command=("node", source, str(mib)), reads=(PROGRAMS,))

    enough = dataclasses.replace(Limits(), wall_ms=AMPLE.wall_ms, cpu_ms=AMPLE.cpu_ms)
    assert run(hungry(16), limits=enough).output == b'{"taken":16}\n'
    over = run(hungry(1_500), limits=enough)
    assert over.limit is Guard.MEMORY, over


def test_address_space_is_limited_on_demand_only() -> None:
    reserve = "import mmap; mmap.mmap(-1, 4 << 30); print('reserved')"
    assert python(reserve).succeeded
    refused = python(reserve, limits=with_limit(address_space_bytes=1 << 30))
    assert refused.exit_code == 1
    assert b"Cannot allocate memory" in refused.errors


@pytest.mark.usefixtures("cgroup")
def test_cpu_time_over_the_limit_ends_the_program() -> None:
    ended = python("while True: pass", limits=with_limit(cpu_ms=300))
    assert ended.limit is Guard.CPU_TIME
    assert ended.cpu_ms >= 300


@pytest.mark.usefixtures("cgroup")
def test_cpu_time_is_that_of_the_whole_tree_also_of_children_that_ended() -> None:
    spin = "import time; e = time.process_time() + 0.2\nwhile time.process_time() < e: pass"
    burn = f'python3 -c "{spin}"'
    ended = shell(f"while true; do {burn}; done", limits=with_limit(cpu_ms=900))
    assert ended.limit is Guard.CPU_TIME


def test_a_program_that_only_waits_meets_the_wall_clock() -> None:
    ended = shell("sleep 60", limits=with_limit(wall_ms=300))
    assert ended.limit is Guard.WALL_CLOCK


@pytest.mark.usefixtures("cgroup")
def test_a_fork_bomb_is_ended_and_leaves_nothing() -> None:
    text = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
    assert python(text, limits=with_limit(processes=40)).limit is Guard.PROCESSES


def test_a_bomb_that_gives_up_when_it_is_refused_was_held_and_leaves_nothing() -> None:
    """The kernel's own refusal leaves no trace outside a control group: held, perhaps not named."""
    ended = shell("b() { b | b & }; b; sleep 0.5", limits=with_limit(processes=40, wall_ms=1_000))
    assert ended.limit in (None, Guard.PROCESSES, Guard.WALL_CLOCK)
    assert ended.processes_peak <= 2 * 40 + 64


def test_threads_count_as_processes() -> None:
    text = """
import threading, time
while True:
    try:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        time.sleep(60)
"""
    assert python(text, limits=with_limit(processes=40)).limit is Guard.PROCESSES


def test_endless_output_is_ended_and_no_more_is_kept() -> None:
    ended = shell("yes", limits=with_limit(output_bytes=100_000))
    assert ended.limit is Guard.OUTPUT_SIZE
    assert len(ended.output) == 100_000


def test_endless_words_on_standard_error_are_ended_too() -> None:
    ended = shell("yes >&2", limits=with_limit(output_bytes=100_000))
    assert ended.limit is Guard.OUTPUT_SIZE
    assert len(ended.errors) <= 8_192


def test_too_many_open_files_end_the_program() -> None:
    text = """
import time
kept = []
while True:
    try:
        kept.append(open("/dev/null"))
    except OSError:
        time.sleep(60)
"""
    assert python(text, limits=with_limit(open_files=50)).limit is Guard.OPEN_FILES


def test_a_file_over_the_limit_ends_the_program_or_is_named_when_it_fails() -> None:
    small = with_limit(file_bytes=MIB)
    by_signal = shell("head -c 3000000 /dev/zero > big; echo unreachable", limits=small)
    raised = python("open('big', 'wb').write(b'x' * 3000000)", limits=small)
    assert raised.limit is Guard.FILE_SIZE
    assert by_signal.output == b"unreachable\n", "the shell lives, its child was ended"
    main = run(
        Program(command=("head", "-c", "3000000", "/dev/zero")),
        limits=dataclasses.replace(small, output_bytes=4 * MIB),
    )
    assert main.succeeded, "a pipe is no file"


def test_many_small_files_meet_the_size_of_the_scratch_directory() -> None:
    text = """
for n in range(100):
    with open(f"part{n}", "wb") as file: file.write(b"x" * 500_000)
"""
    limits = with_limit(scratch_bytes=4 * MIB, file_bytes=MIB)
    assert python(text, limits=limits).limit is Guard.SCRATCH_SIZE


def test_a_program_within_its_limits_gets_its_input_and_gives_its_output() -> None:
    big = b"x" * 3_000_000
    ended = shell("cat", stdin=big)
    assert ended.output == big
    assert ended.succeeded


def test_a_program_need_not_read_its_input() -> None:
    assert shell("echo done", stdin=b"x" * 3_000_000).output == b"done\n"


def test_a_failure_of_the_programs_own_is_told_as_it_was() -> None:
    failed = shell("echo why >&2; exit 7")
    assert (failed.exit_code, failed.limit, failed.errors) == (7, None, b"why\n")
    killed = shell("kill -SEGV $$")
    assert (killed.signal, killed.limit) == (11, None)
