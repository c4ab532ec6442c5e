"""`acp demo`: the bank hotline end to end, with programs in five languages behind one gateway.

It starts everything, runs a session per question, says what came of it, and stops everything.
What is not installed is named with its package, and the others go on.
"""

import signal
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting, wrong_use

if TYPE_CHECKING:
    from reference_components.hotline.house import House
    from reference_components.hotline.questions import Question
    from reference_components.hotline.report import Results

FOLDER_DEFAULT = ".demo"
SHOWN_MAX = 12

app = typer.Typer()


@app.command("demo")
def demo(
    given: Annotated[
        Path | None, typer.Option("--input", help="A CSV file with a column text.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="At most so many questions, spread over the file; 0 = all.")
    ] = 0,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where journals and logs go. [a new folder in .demo]")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run the bank hotline: a gateway, components in five languages, a session per question."""
    from reference_components.hotline import report
    from reference_components.hotline.house import open_house
    from reference_components.hotline.questions import InputError, questions

    out = Output(json=as_json)
    try:
        asked = questions(given, limit)
    except InputError as problem:
        wrong_use(out, str(problem))
    signal.signal(signal.SIGTERM, _interrupt)
    folder = (data_dir or _new_folder()).resolve()
    with reporting(out), open_house(folder, out) as house:
        _say_who_is_there(out, house)
        results = _run(out, house, asked=asked)
        problems = results.problems()  # now: in the end everything is stopped
        if out.json:
            out.value(report.as_data(results))
        else:
            report.show(out, results)
            _say_where_to_look(out, results, keep=keep)
        if keep:
            _wait(out)
    if problems:
        raise typer.Exit(Exit.FAILED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _new_folder() -> Path:
    """A folder of this run: below the current one, or a temporary one where that cannot be."""
    name = time.strftime("%Y%m%d-%H%M%S")
    try:
        base = Path(FOLDER_DEFAULT)
        base.mkdir(exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="acp-demo-"))


def _say_who_is_there(out: Output, house: "House") -> None:
    languages = ", ".join(f"{one.name} ({one.spec.language})" for one in house.running)
    out.note(f"gateway at {house.url}; {languages}")
    for lack in house.missing:
        out.note(f"{lack.name} is left out, it needs {lack.tool}: apt-get install {lack.package}")
    for broken in house.broken:
        out.note(f"{broken.name} is left out, it did not start: {broken.why}")


def _run(out: Output, house: "House", *, asked: "list[Question]") -> "Results":
    """The story of the memory first, on a memory that is still empty; then every question."""
    from acp_spec.sdk.gateway_client import GatewayClient
    from reference_components.hotline.calls import Ended, all_calls
    from reference_components.hotline.report import Results
    from reference_components.hotline.story import tell
    from reference_components.hotline.tally import Tally

    tally, shown = Tally(), list[Ended]()
    with GatewayClient(house.url) as client:
        told = tell(client, house.workflow, running={one.name for one in house.running})
        begun = time.monotonic()
        with out.progress("sessions", total=len(asked)) as steps:
            for ended in all_calls(client, house.workflow, asked=asked):
                tally.add(ended.view, ended.trajectory)
                if len(shown) < SHOWN_MAX:
                    shown.append(ended)
                steps.advance()
        took_s = time.monotonic() - begun
    return Results(house=house, tally=tally, told=told, shown=shown, took_s=took_s)


def _say_where_to_look(out: Output, results: "Results", *, keep: bool) -> None:
    from reference_components.hotline.report import look_next

    out.value(None, text="\nWhere to look next:")
    for line in look_next(results, kept=keep):
        out.value(None, text=f"  {line}")


def _wait(out: Output) -> None:
    try:
        out.note("\neverything keeps running; Ctrl-C stops it")
        while True:
            signal.pause()
    except KeyboardInterrupt:
        out.note("stopping")
