"""A tree of processes is found and measured through /proc, by either way of finding it."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from acp_spec.sdk.warden import tree


@pytest.fixture
def family() -> Iterator[int]:
    """A shell with a child that waits; its process id."""
    shell = subprocess.Popen(["/bin/sh", "-c", "sleep 600 & echo ready; wait"], stdout=-1)
    assert shell.stdout is not None
    shell.stdout.readline()
    yield shell.pid
    for pid in tree.descendants(shell.pid):
        os.kill(pid, 9)
    shell.kill()
    shell.wait()
    shell.stdout.close()


@pytest.mark.parametrize("told", [True, False])
def test_descendants_are_found_with_and_without_the_kernels_help(
    family: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if told and not tree._KERNEL_TELLS_CHILDREN:
        pytest.skip("this kernel tells no children (CONFIG_PROC_CHILDREN)")
    monkeypatch.setattr(tree, "_KERNEL_TELLS_CHILDREN", told)
    (child,) = tree.descendants(family)
    assert tree.descendants(child) == []
    assert family in tree.descendants(os.getpid())


def test_use_is_the_sum_and_what_has_ended_uses_nothing(family: int) -> None:
    both = tree.use([family, *tree.descendants(family)], memory_limit_bytes=1 << 40)
    assert both.processes == 2
    assert both.memory_bytes > 0
    exact = tree.use([family, *tree.descendants(family)], memory_limit_bytes=0)
    assert 0 < exact.memory_bytes <= both.memory_bytes
    assert tree.use([1 << 30], memory_limit_bytes=1) == tree.Use()


def test_open_files_are_counted_per_process() -> None:
    assert tree.has_more_open([os.getpid()], 1)
    assert not tree.has_more_open([os.getpid()], 100_000)
    assert not tree.has_more_open([1 << 30], 0)
