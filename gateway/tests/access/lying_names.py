"""`acp` with a resolver that changes its mind: the names and answers stand in a file.

Only the event loop's own look-up is replaced, so everything from the address guard to the socket is
the real thing. ACP_TEST_NAMES names a JSON file: name -> list of answers (each a list of
addresses); each look-up takes the next one, the last one stays. Look-ups are noted beside it.
"""

import json
import os
import socket
from itertools import count
from pathlib import Path
from typing import Any

import uvloop

VARIABLE = "ACP_TEST_NAMES"
Info = tuple[int, int, int, str, tuple[str, int]]


def lookups_beside(names: Path) -> Path:
    return names.with_suffix(".asked")


def main() -> None:
    """Run `acp` as the command line says, with these names."""
    names = Path(os.environ[VARIABLE])
    turns: dict[str, count[int]] = {}

    def known() -> dict[str, list[list[str]]]:
        read: dict[str, list[list[str]]] = json.loads(names.read_text())
        return read

    async def getaddrinfo(self: object, host: str, port: int, **_: Any) -> list[Info]:
        with lookups_beside(names).open("a") as noted:
            noted.write(host + "\n")
        if host not in known():
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answers = known()[host]
        turn = next(turns.setdefault(host, count()))
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in answers[min(turn, len(answers) - 1)]
        ]

    uvloop.Loop.getaddrinfo = getaddrinfo  # type: ignore[assignment,method-assign]
    from gateway.cli import main as acp

    acp()


if __name__ == "__main__":
    main()
