"""What every `acp` command shares: output, exit codes, progress, errors, finding commands.

Data goes to standard output (a table for people, with `--json` one JSON document or one per line);
everything else goes to standard error. Commands are Typer apps that packages announce under the
entry point group `acp.commands`; their commands stand directly below `acp`. What others wrote
(payloads, messages, names) is never markup and never moves a cursor: it passes `shown`.
"""

import contextlib
import enum
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, NoReturn, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, AcpFailure, Code, Reason
from acp_spec.model.payload import is_absent

COMMANDS_GROUP = "acp.commands"

PIPED_WIDTH = 1000
"""Columns of a line that no terminal shows: wide enough that no cell is ever cut."""

T = TypeVar("T")


class Exit(enum.IntEnum):
    """The one table of exit codes; `acp --help` prints it."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5
    PERMISSION = 6
    TIMEOUT = 7
    REFUSED = 8
    INTERNAL = 70
    INTERRUPTED = 130


EXIT_MEANING: dict[Exit, str] = {
    Exit.OK: "done",
    Exit.FAILED: "a check or a session failed",
    Exit.USAGE: "the command or its input is wrong",
    Exit.NOT_FOUND: "what was named does not exist",
    Exit.CONFLICT: "it exists already, or has changed meanwhile",
    Exit.UNAVAILABLE: "the gateway or component cannot be reached, or is overloaded",
    Exit.PERMISSION: "no token, or one without the right",
    Exit.TIMEOUT: "it took too long",
    Exit.REFUSED: "refused in the present state",
    Exit.INTERNAL: "an error inside; please report it",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
}

EXIT_OF_CODE: dict[Code, Exit] = {
    Code.CANCELLED: Exit.FAILED,
    Code.UNKNOWN: Exit.INTERNAL,
    Code.INVALID_ARGUMENT: Exit.USAGE,
    Code.DEADLINE_EXCEEDED: Exit.TIMEOUT,
    Code.NOT_FOUND: Exit.NOT_FOUND,
    Code.ALREADY_EXISTS: Exit.CONFLICT,
    Code.PERMISSION_DENIED: Exit.PERMISSION,
    Code.RESOURCE_EXHAUSTED: Exit.UNAVAILABLE,
    Code.FAILED_PRECONDITION: Exit.REFUSED,
    Code.ABORTED: Exit.CONFLICT,
    Code.OUT_OF_RANGE: Exit.NOT_FOUND,
    Code.UNIMPLEMENTED: Exit.REFUSED,
    Code.INTERNAL: Exit.INTERNAL,
    Code.UNAVAILABLE: Exit.UNAVAILABLE,
    Code.DATA_LOSS: Exit.INTERNAL,
    Code.UNAUTHENTICATED: Exit.PERMISSION,
}

# What a person can do about it; the error's own message says what happened.
ADVICE: dict[Exit, str] = {
    Exit.USAGE: "Compare the input with the message; `--help` shows what the command takes.",
    Exit.NOT_FOUND: "List what exists with `acp components`, `acp workflows` or `acp sessions`.",
    Exit.CONFLICT: "Read the present state, then decide; the same input again changes nothing.",
    Exit.UNAVAILABLE: "Is it running, and is the address right? `acp doctor` checks this machine.",
    Exit.PERMISSION: "Where a token is missing: --token or ACP_TOKEN; `acp tokens` makes one.",
    Exit.TIMEOUT: "Look where it stands with `acp sessions`, or allow more time.",
    Exit.INTERNAL: "The log of the one who failed has more; look for the ids in the message.",
}

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print JSON; a list prints one JSON document a line.")
]

# What could move a cursor, colour, retitle or reorder a terminal's text (escape sequences, C1, the
# directions of bidirectional text), and half characters, which cannot be written at all.
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_NOT_PRINTED = re.compile(f"[{_CONTROLS}]")
_NOT_IN_A_LINE = re.compile(f"[{_CONTROLS}\\t\\n]")


def harmless(text: str, *, lines: bool = True) -> str:
    """`text` with its control characters as JSON writes them; without `lines` also its newlines."""
    pattern = _NOT_PRINTED if lines else _NOT_IN_A_LINE
    return pattern.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shown(text: str, style: str = "", *, lines: bool = False) -> Text:
    """The one way by which what others wrote reaches a terminal: as it is, never as markup."""
    return Text(harmless(text, lines=lines), style=style)


def _console(*, stderr: bool = False) -> Console:
    return Console(stderr=stderr, soft_wrap=True, markup=False, emoji=False, highlight=False)


class Output:
    """Where a command writes. Make one per command: `out = Output(json=json)`."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self._data = _console()
        if not self._data.is_terminal:
            self._data.width = PIPED_WIDTH
        self._notes = _console(stderr=True)

    def value(self, data: object, *, text: str | None = None) -> None:
        """One result. With `--json` the data as it is, else `text`, or indented JSON."""
        if self.json:
            self._line(msgspec.json.encode(data))
        elif text is not None:
            self._data.print(shown(text, lines=True))
        else:
            self._line(msgspec.json.format(msgspec.json.encode(data)))

    def rows(
        self,
        items: Iterable[T],
        *,
        columns: Sequence[str],
        cells: Callable[[T], Sequence[str]],
        title: str = "",
    ) -> None:
        """Many results: a table whose row is `cells(item)`; with `--json` one document per line."""
        if self.json:
            for item in items:
                self._line(msgspec.json.encode(item))
            return
        table = Table(title=shown(title) if title else None, title_justify="left")
        for column in columns:
            # An id that is cut is of no use; where nobody watches, a row stays on one line.
            table.add_column(column, overflow="fold", no_wrap=not self._data.is_terminal)
        for item in items:
            table.add_row(*(shown(cell) for cell in cells(item)))
        self._data.print(table)

    def document(self, data: bytes) -> None:
        """JSON that is there already: to a program byte for byte as it came."""
        self._line(data)

    def show(self, renderable: object) -> None:
        """Something rich draws (a tree, a panel), made of `shown` texts; not for `--json`."""
        self._data.print(renderable)

    def note(self, text: str) -> None:
        """A sentence for the person, on standard error; silent with `--json`."""
        if not self.json:
            self._notes.print(shown(text, lines=True))

    def confirmed(self, question: str) -> bool:
        """Ask the person, on standard error; no answer at all is a no."""
        sys.stderr.write(f"{harmless(question)} [y/N]: ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def problem(self, failed: AcpError) -> None:
        """What failed and what to do, on standard error; with `--json` the error itself."""
        if self.json:
            sys.stderr.write(harmless(msgspec.json.encode({"error": failed}).decode()) + "\n")
            return
        self._notes.print(shown("error: ", "red") + shown(failed.message, lines=True))
        about = f"{failed.reason}, at {failed.boundary.value.lower()}"
        if not is_absent(failed.details):
            about += f", details {bytes(failed.details).decode('utf-8', 'replace')[:500]}"
        self._notes.print(shown(about, "dim"))
        advice = ADVICE.get(exit_of(failed))
        if advice:
            self._notes.print(shown(advice))

    @contextlib.contextmanager
    def progress(self, what: str, *, total: int | None = None) -> Iterator["Steps"]:
        """A bar on standard error while something long runs; nothing where nobody watches."""
        quiet = self.json or not self._notes.is_terminal
        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._notes,
            disable=quiet,
            transient=True,
        )
        with bar:
            yield Steps(bar=bar, task=bar.add_task(harmless(what, lines=False), total=total))

    def _line(self, data: bytes) -> None:
        """JSON: to a program as it is, to a terminal without the controls that JSON lets stand."""
        text = data.decode()
        sys.stdout.write((harmless(text) if self._data.is_terminal else text) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A running progress bar."""

    bar: Progress
    task: TaskID

    def advance(self, by: int = 1) -> None:
        self.bar.advance(self.task, by)

    def say(self, what: str) -> None:
        """Change the words beside the bar."""
        self.bar.update(self.task, description=harmless(what, lines=False))


def exit_of(failed: AcpError) -> Exit:
    """The exit code for an error: by its code."""
    return EXIT_OF_CODE[failed.code]


def fail(out: Output, failed: AcpError) -> NoReturn:
    """Report the error and leave the command with its exit code."""
    out.problem(failed)
    raise typer.Exit(exit_of(failed))


def wrong_use(out: Output, message: str) -> NoReturn:
    """The command's input is wrong: say so and leave with the exit code for usage."""
    fail(out, error(Reason.INVALID_REQUEST, message, boundary=Boundary.CLIENT))


@contextlib.contextmanager
def reporting(out: Output) -> Iterator[None]:
    """Around a command's body: a failure becomes a message and an exit code, not a traceback."""
    try:
        yield
    except AcpFailure as failure:
        fail(out, failure.error)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def add_commands(root: typer.Typer) -> None:
    """Put the commands of every installed package below `root`, by the names they chose."""
    for entry in sorted(entry_points(group=COMMANDS_GROUP), key=lambda entry: entry.name):
        try:
            app = entry.load()
        except ImportError as problem:
            _add_missing(root, entry, problem=problem)
        else:
            assert isinstance(app, typer.Typer), f"{entry.value} is not a Typer app"
            root.add_typer(app)


def _add_missing(root: typer.Typer, entry: EntryPoint, *, problem: ImportError) -> None:
    """A group that cannot be imported stays visible, and says what is missing when used."""

    def explain() -> None:
        missing = problem.name or str(problem)
        text = f"`acp {entry.name}` needs the module {missing}, which is not installed."
        Output().note(text)
        raise typer.Exit(Exit.REFUSED)

    root.command(entry.name, help=f"(not available: {problem})", hidden=True)(explain)


def exit_table() -> str:
    """The exit codes as lines, for help texts."""
    return "\n".join(f"{code.value:>3}  {EXIT_MEANING[code]}" for code in Exit)
