"""Bytes on a socket: what was said back until the peer closed, or had nothing more to say."""

import contextlib
import socket
import struct
from collections.abc import Sequence

CONNECT_S = 10.0
# A server that has not closed by then is stuck; none of the attacks takes more than a moment.
ANSWER_S = 20.0


class Stuck(AssertionError):
    """The peer neither answered to the end nor closed."""


def say(address: str, *pieces: bytes, ends: bool = True, quiet_s: float = ANSWER_S) -> bytes:
    """Send the pieces and read until the peer closes.

    `ends`: close the sending side after the last piece. A peer that is quiet for `quiet_s` is
    taken as having said all, unless the sending side was closed: then it is Stuck.
    """
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=CONNECT_S) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.settimeout(quiet_s)
        with contextlib.suppress(OSError):  # it need not read an attack
            for piece in pieces:
                peer.sendall(piece)
            if ends:
                peer.shutdown(socket.SHUT_WR)
        return _read(peer, must_close=ends)


def _read(peer: socket.socket, *, must_close: bool) -> bytes:
    answer = b""
    try:
        while piece := peer.recv(65536):
            answer += piece
    except TimeoutError:
        if must_close:
            raise Stuck(f"no end after {answer[:200]!r}") from None
    except OSError:
        pass
    return answer


def slam(address: str, *pieces: bytes) -> None:
    """Send the pieces, read nothing, and close with a reset."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=CONNECT_S) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                peer.sendall(piece)


def statuses(answer: bytes) -> Sequence[int]:
    """The status of every HTTP/1.1 response in these bytes, in order (bodies hold none)."""
    lines = answer.split(b"\r\n")
    return [int(line.split(b" ")[1]) for line in lines if line.startswith(b"HTTP/1.1 ")]
