"""The address that the suite listens at, tried before gRPC takes it.

gRPC tells what is wrong with an address as a line of its own log, and takes port 99999 for 34463.
"""

import socket
from typing import Final

PORT_MAX: Final = 65_535


def check_bind(bind: str) -> None:
    """Raises ValueError for what is no `host:port`, OSError for one that cannot be bound here."""
    host, colon, port = bind.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and len(port) <= len(str(PORT_MAX))
    if not colon or not bare or not is_port or int(port) > PORT_MAX:
        raise ValueError(
            f"{bind!r} is no address to bind: write host:port, such as 127.0.0.1:0 (0: any port)"
        )
    try:
        found = socket.getaddrinfo(bare, int(port), type=socket.SOCK_STREAM)
        family, kind, proto, _, address = found[0]
        with socket.socket(family, kind, proto) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as problem:
        raise OSError(f"{bind} cannot be bound: {problem.strerror or problem}") from None
