"""The command `acp`: one root, under which every installed package puts its groups of commands.

Nothing heavy is imported here or while `--help` is printed: commands import what they need.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable
from typing import Final

STDOUT: Final = 1
USAGE: Final = 2
"""As in the table of `acp_spec.sdk.cli`, which is too much to import before a command is known."""


def main() -> None:
    """The entry point `acp`."""
    import typer

    from acp_spec.sdk.cli import add_commands, exit_table

    root = typer.Typer(
        name="acp",
        help="ACP v1: a gateway for decision sessions over components in any language.",
        epilog="Exit codes:\n\n" + "\n\n".join(exit_table().splitlines()),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @root.callback()
    def _root() -> None:
        """Groups of commands stand below; `acp COMMAND --help` tells more."""

    add_commands(root)
    _until_nobody_reads(root)


def _until_nobody_reads(root: Callable[[], object]) -> None:
    """`acp sessions list | head`: the reader has enough, and nothing is wrong. What the command had
    to say by its exit code before that stays. A full disk is told in a line."""
    try:
        try:
            root()
        finally:
            with contextlib.suppress(AttributeError):  # there is none after `>&-`
                sys.stdout.flush()  # later nobody could answer to what it says
    except (BrokenPipeError, SystemExit) as ended:
        before = ended.__context__
        if not isinstance(ended, BrokenPipeError) and not isinstance(before, BrokenPipeError):
            raise
        _write_no_more()
        sys.exit(before.code if isinstance(before, SystemExit) else 0)
    except OSError as full:
        if full.errno != errno.ENOSPC or full.filename is not None:
            raise
        _write_no_more()
        sys.stderr.write(f"error: standard output cannot be written: {full.strerror}\n")
        sys.exit(USAGE)


def _write_no_more() -> None:
    """What still waits to be written has nowhere to go, and nobody is told so again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
