"""`acp simulate`: the whole gateway under virtual time, with everything around it that can fail.

Progress and what was found go to standard error; the last line is one JSON document of figures.
"""

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting, wrong_use
from gateway.cli.outputs import make_folder

if TYPE_CHECKING:
    from gateway.simulation.campaign import Keep, Order, Sum
    from gateway.simulation.scenario import Scenario

app = typer.Typer()

SESSIONS_DEFAULT = 2_000


@app.command("simulate")
def simulate(
    seed: Annotated[int, typer.Option(help="All chance hangs on it.")] = 1,
    sessions: Annotated[
        int, typer.Option(help="About so many sessions.", min=1)
    ] = SESSIONS_DEFAULT,
    seconds: Annotated[float, typer.Option(help="Go on for so long instead.", min=0)] = 0.0,
    workers: Annotated[int, typer.Option(help="Processes; worlds are shared out.", min=1)] = 2,
    policy: Annotated[
        Path | None,
        typer.Option(help="A recovery block (YAML or JSON) that every workflow gets."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the trajectories there, as a gateway does.")
    ] = None,
    mutant: Annotated[
        str, typer.Option(help="Put this bug in: its law must break. `?` lists them.")
    ] = "",
    world: Annotated[int | None, typer.Option(help="Live this one world only.", min=0)] = None,
    only: Annotated[str, typer.Option(help="Its sessions with these numbers: 3,17.")] = "",
    with_faults: Annotated[
        str | None, typer.Option("--with", help="Only these kinds of faults strike it: crash,slow.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Simulate sessions of the real gateway over simulated components, disks, clocks and crashes.

    Every law is checked at every event. A broken one is told with its seed, the smallest scenario
    found, and the command that replays it; the exit code is then 1. With --mutant it is the other
    way round: 0 when the law that the mutant names was found broken.
    """
    from gateway.simulation.campaign import Order

    out_to = Output(json=as_json)
    if mutant == "?":
        _list_mutants(out_to)
        return
    _check_words(out_to, mutant=mutant, only=only, with_faults=with_faults)
    if out is not None:
        workers = 1  # one writer of files
        with reporting(out_to):
            make_folder("--out", out)
    order = Order(
        seed=seed,
        sessions=sessions,
        seconds=seconds,
        workers=workers,
        recovery=_recovery(out_to, policy),
    )
    with _unlogged():
        if world is not None:
            scenario = _scenario(order, world, only=only, with_faults=with_faults)
            raise typer.Exit(_one(out_to, scenario, mutant=mutant))
        raise typer.Exit(_many(out_to, order, mutant=mutant, folder=out))


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """What fails here fails on purpose; whoever called us logs on afterwards."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _check_words(out: Output, *, mutant: str, only: str, with_faults: str | None) -> None:
    """A word that nobody knows would be a run without it: it is refused."""
    from gateway.simulation import faults
    from gateway.simulation.mutants import MUTANTS

    if mutant and mutant not in MUTANTS:
        wrong_use(out, f"there is no mutant {mutant!r}; `acp simulate --mutant '?'` lists them")
    if not all(part.isdecimal() for part in only.split(",") if only):
        wrong_use(out, f"--only {only!r}: write numbers of sessions, such as 3,17")
    unknown = sorted({*(with_faults or "").split(",")} - {"", *faults.KINDS})
    if unknown:
        wrong_use(out, f"--with {', '.join(unknown)}: kinds are {', '.join(faults.KINDS)}")


def _scenario(order: "Order", world: int, *, only: str, with_faults: str | None) -> "Scenario":
    from dataclasses import replace

    from gateway.simulation import faults

    numbers = frozenset(int(part) for part in only.split(",")) if only else None
    kept = faults.KINDS if with_faults is None else with_faults.split(",")
    return replace(order.scenario(world), only=numbers, without=frozenset(faults.KINDS) - {*kept})


def _recovery(out: Output, policy: Path | None) -> Mapping[str, object]:
    """The recovery block of that file, checked as a workflow's would be."""
    if policy is None:
        return {}
    import yaml

    from gateway.engine.workflow_file import parse_workflow
    from gateway.simulation.random_workflows import workflow_text

    try:
        block = yaml.safe_load(policy.read_bytes())
    except (OSError, yaml.YAMLError) as problem:
        wrong_use(out, f"{policy}: {problem}")
    block = block.get("recovery", block) if isinstance(block, dict) else block
    parsed = parse_workflow(workflow_text(1, block)) if isinstance(block, dict) else ()
    if isinstance(parsed, tuple):
        why = "; ".join(f"{one.path}: {one.message}" for one in parsed) or "it is no mapping"
        such = "{policy: backoff, base_ms: 50}"
        wrong_use(out, f"{policy}: not a recovery block such as {such}: {why}")
    return dict(block)


def _list_mutants(out: Output) -> None:
    from gateway.simulation.mutants import MUTANTS

    out.rows(
        [{"name": name, "law": one.laws[0], "story": one.story} for name, one in MUTANTS.items()],
        columns=("mutant", "breaks", "what it does"),
        cells=lambda row: (row["name"], row["law"], row["story"]),
    )


def _many(out: Output, order: "Order", *, mutant: str, folder: Path | None) -> Exit:
    from gateway.assembly.simulated import make_house
    from gateway.simulation.campaign import campaign, figures
    from gateway.simulation.exchanging import exchanged
    from gateway.simulation.mutants import MUTANTS

    begin = time.perf_counter()
    total = None if order.seconds else order.sessions
    with (
        exchanged(MUTANTS.get(mutant)),
        _kept(folder) as keep,
        out.progress("sessions", total=total) as bar,
    ):
        seen = 0

        def heard(so_far: "Sum") -> None:
            nonlocal seen
            bar.advance(so_far.sessions - seen)
            seen = so_far.sessions

        found = campaign(order, make_house, heard=heard, keep=keep)
        took_s = time.perf_counter() - begin
        broken = _tell_broken(out, found, mutant=mutant) if found.broken else {}
    told = {**figures(found, order, seconds=took_s), "took_s": round(took_s, 1), **broken}
    out.document(_line(told))
    laws = {one.law for _, one in found.broken}
    if mutant:
        return Exit.OK if laws & set(MUTANTS[mutant].laws) else Exit.FAILED
    return Exit.FAILED if laws else Exit.OK


def _one(out: Output, scenario: "Scenario", *, mutant: str) -> Exit:
    """One world, told at length."""
    from gateway.assembly.simulated import make_house
    from gateway.simulation.campaign import lived
    from gateway.simulation.exchanging import exchanged
    from gateway.simulation.mutants import MUTANTS

    with exchanged(MUTANTS.get(mutant)):
        found = lived(scenario, make_house)
    if scenario.only and not found.sessions:
        wrong_use(out, "--only: no session of this world has such a number")
    for one in found.violations:
        out.note(f"{one.at_s:9.3f} s  session {one.session or '-':>3}  {one.law}: {one.what}")
    out.document(
        _line(
            {
                "sessions": found.sessions,
                "seed": scenario.seed,
                "world": scenario.world,
                "violations": len(found.violations),
                "ends": dict(found.ends),
                "fault_kinds": dict(found.met),
                "lives": found.lives,
                "virtual_s": round(found.virtual_s, 3),
                "digest": f"{found.digest:08x}",
            }
        )
    )
    return Exit.FAILED if found.violations else Exit.OK


def _tell_broken(out: Output, found: "Sum", *, mutant: str) -> dict[str, object]:
    """The seed, the shrunk scenario, and how to see it again; the same as fields."""
    from gateway.assembly.simulated import make_house
    from gateway.simulation import faults
    from gateway.simulation.shrinking import command, shrunk

    scenario, violation = found.broken[0]
    out.note(f"BROKEN: {violation.law}: {violation.what}")
    out.note(f"  seed {scenario.seed}, world {scenario.world}, {violation.at_s:.3f} s into it")
    smaller = shrunk(scenario, make_house, law=violation.law)
    sessions = sorted(smaller.numbers())
    struck = [kind for kind in faults.KINDS if kind not in smaller.without]
    again = command(smaller, mutant)
    out.note(f"  smallest found: sessions {sessions}")
    out.note(f"  faults: {', '.join(struck) or 'none'}")
    out.note(f"  again: {again}")
    smallest = {"world": scenario.world, "sessions": sessions, "faults": struck, "again": again}
    return {"broken": {"law": violation.law, "what": violation.what, **smallest}}


@contextlib.contextmanager
def _kept(folder: Path | None) -> Iterator["Keep | None"]:
    """Ordinary files of trajectories in `folder`."""
    if folder is None:
        yield None
        return
    from gateway.simulation.machine import START_MS
    from gateway.stores.trajectory_log import BATCH_LINES_MAX, FOLDER, TrajectoryLog

    log = TrajectoryLog(folder / FOLDER, rotate_bytes=64 << 20, rotate_ms=86_400_000)

    def keep(lines: list[bytes]) -> None:
        for start in range(0, len(lines), BATCH_LINES_MAX):
            log.append(lines[start : start + BATCH_LINES_MAX], START_MS)

    yield keep
    log.close()


def _line(data: dict[str, object]) -> bytes:
    import msgspec

    return msgspec.json.encode(data)
