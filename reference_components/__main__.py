"""`python -m reference_components NAME...`: start components, say where they serve, run until told.

For scripts in any language, and for whoever may not import this package. One JSON line per
component as it gets ready, then one `{"ready": true}`; SIGTERM, Ctrl-C or the end of standard input
(`--until-stdin-ends`) stops all of them. Without names it starts what is installed.
"""

import json
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from acp_spec.sdk.cli import Exit
from reference_components.build import BuildError
from reference_components.launcher import Launcher, LaunchError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def start(
    names: Annotated[list[str] | None, typer.Argument(help="Components; none = all.")] = None,
    logs: Annotated[Path | None, typer.Option(help="Where logs and state go.")] = None,
    until_stdin_ends: Annotated[
        bool, typer.Option("--until-stdin-ends", help="Also stop when standard input ends.")
    ] = False,
) -> None:
    """Start components on free ports and keep them until SIGTERM."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    try:
        with Launcher(log_dir=logs) as launcher:
            for lack in launcher.missing():
                _say(missing=lack.name, tool=lack.tool, package=lack.package)
            for name in names or [spec.name for spec in launcher.available()]:
                one = launcher.start(name)
                transport = one.spec.transport.value
                _say(
                    name=name, url=one.url, transport=transport, pid=one.pid, log=str(one.log_file)
                )
            _say(ready=True)
            if until_stdin_ends:
                sys.stdin.read()
                return
            while True:
                signal.pause()
    except (BuildError, LaunchError) as problem:
        print(problem, file=sys.stderr)  # noqa: T201
        raise typer.Exit(Exit.UNAVAILABLE) from None


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def _say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    app()
