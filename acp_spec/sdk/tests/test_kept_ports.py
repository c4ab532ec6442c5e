"""Ports that stay ours while nobody listens there."""

import socket
import subprocess
import sys

import pytest

from acp_spec.sdk import kept_ports
from acp_spec.sdk.kept_ports import GIVEN, LOOPBACK, KeptPorts

TAKE = "from acp_spec.sdk.kept_ports import KeptPorts; ports = KeptPorts(); print(ports.take())"


def test_nobody_is_given_a_port_that_somebody_else_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two test processes would start two servers at one place."""
    with KeptPorts() as mine, KeptPorts() as theirs:
        port = mine.take()
        monkeypatch.setattr(kept_ports, "GIVEN", range(port, port + 1))
        with pytest.raises(OSError, match="is taken"):
            theirs.take()
        mine.close()
        assert theirs.take() == port


def test_it_is_given_across_processes() -> None:
    with KeptPorts() as mine:
        ports = {mine.take() for _ in range(20)}
        assert len(ports) == 20
        told = subprocess.run([sys.executable, "-c", TAKE], capture_output=True, check=True)
        assert int(told.stdout) not in ports


def test_one_where_somebody_listens_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with KeptPorts() as mine, socket.socket() as listening:
        port = mine.take()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen()
        mine.close()
        monkeypatch.setattr(kept_ports, "GIVEN", range(port, port + 1))
        with pytest.raises(OSError, match="is taken"):
            mine.take()


def test_the_system_gives_none_of_them_out_by_itself() -> None:
    given = []
    for _ in range(200):
        with socket.socket() as any_port:
            any_port.bind((LOOPBACK, 0))
            given.append(any_port.getsockname()[1])
    assert not set(given) & set(GIVEN)
