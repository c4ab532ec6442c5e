"""The command `acp`: one root, under which every installed package puts its groups of commands.

Nothing heavy is imported here or while `--help` is printed: commands import what they need.
"""

import sys


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
    try:
        root()
    except BrokenPipeError:
        # `acp sessions list | head`: the reader has enough, and nothing is wrong.
        sys.stderr.close()
        sys.exit(0)
