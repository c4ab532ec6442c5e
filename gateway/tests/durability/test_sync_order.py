"""Durable before the promise leaves: the disk is cut off at the very moment an answer is there.

The same stories with `journal.sync` off must lose what was promised: that proves that they bite.
"""

from pathlib import Path

import pytest

from gateway.tests.durability.bench import reopened, run, serving
from gateway.tests.durability.house_promises import PROMISES
from gateway.tests.durability.promises import Promise, prepare
from gateway.tests.durability.slow_disk import SlowDisk


def is_kept(promise: Promise, folder: Path, *, sync: bool) -> bool:
    """Whether what was promised is there after a power cut at the moment of the promise."""

    async def story() -> bool:
        async with serving(SlowDisk(), folder / "before", sync=sync) as bench:
            await prepare(bench)
            kept = await promise(bench)
            found = bench.store.durable()
        return await kept(reopened(found, folder / "after"))

    return run(story)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_what_was_promised_is_there_after_a_power_cut(promise: Promise, tmp_path: Path) -> None:
    assert is_kept(promise, tmp_path, sync=True)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_without_sync_the_same_power_cut_loses_it(promise: Promise, tmp_path: Path) -> None:
    assert not is_kept(promise, tmp_path, sync=False)
