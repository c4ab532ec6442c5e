"""What a life leaves on its disk, by how it ended."""

import json
from collections.abc import Sequence

import pytest

from gateway.simulation.dice import Dice
from gateway.simulation.machine import Lines, Machine, SyncSteps
from gateway.simulation.virtual_loop import Death, Process, VirtualLoop
from gateway.stores.errors import StoreFailed
from gateway.stores.memory import Operation
from gateway.stores.ports import Table
from gateway.stores.trajectory_log import Line


class Nobody:
    def written(self, operations: Sequence[Operation]) -> None: ...

    def sync_begins(self) -> None: ...

    def synced(self) -> None: ...

    def lines_kept(self, lines: Sequence[bytes]) -> None: ...


def new_machine() -> Machine:
    loop = VirtualLoop(Process("world"))  # type: ignore[abstract]
    return Machine(loop, Nobody(), dice=Dice("test"))


def put(machine: Machine, key: bytes) -> None:
    batch = machine.disk.batch()
    batch.put(Table.META, key, b"v")
    machine.disk.write(batch)


def test_a_power_cut_takes_what_was_not_synced_a_kill_does_not() -> None:
    for power_cut in (True, False):
        machine = new_machine()
        put(machine, b"synced")
        machine.disk.sync()
        put(machine, b"written")
        machine.next_life(power_cut=power_cut)
        assert machine.disk.get(Table.META, b"synced") == b"v"
        assert (machine.disk.get(Table.META, b"written") is None) is power_cut


def test_a_sync_covers_what_was_written_when_it_began() -> None:
    machine = new_machine()
    heard: list[str] = []

    def job() -> None:
        machine.disk.sync()
        machine.loop.call_soon_threadsafe(heard.append, "synced")

    def begin() -> None:
        put(machine, b"before")
        SyncSteps(machine).put(job)
        put(machine, b"meanwhile")
        assert not heard

    machine.loop.later(0.0, begin, of=machine.process)
    machine.loop.run(10.0, lambda: False)
    assert heard == ["synced"]
    machine.next_life(power_cut=True)
    assert machine.disk.get(Table.META, b"before") == b"v"
    assert machine.disk.get(Table.META, b"meanwhile") is None


def test_a_full_disk_takes_nothing() -> None:
    machine = new_machine()
    machine.disk.is_full = True
    with pytest.raises(StoreFailed):
        put(machine, b"k")
    assert machine.disk.get(Table.META, b"k") is None


def test_the_fuse_ends_the_life_at_the_named_point_once() -> None:
    machine, blown = new_machine(), list[str]()
    machine.fuse.point = "after write"
    machine.fuse.blow = lambda: blown.append("blown")
    with pytest.raises(Death):
        put(machine, b"k")
    put(machine, b"again")
    assert blown == ["blown"]
    assert machine.disk.get(Table.META, b"k") == b"v"


def test_a_line_that_was_cut_is_gone_and_the_whole_ones_are_told() -> None:
    machine = new_machine()
    lines = [json.dumps({"session_id": f"s{n}", "sequence": n}).encode() + b"\n" for n in range(3)]
    machine.fuse.point = "in a line"
    with pytest.raises(Death):
        Lines(machine).append(lines, 0)
    again = Lines(machine)
    assert again.recover() == {Line("s0", 0), Line("s1", 1)}
    again.append(lines[2:], 0)
    assert machine.shelf.lines() == lines
    assert again.erase("s1", now_ms=1) == 1
    assert len(machine.shelf.lines()) == 2
