"""A component as a process: its ready line, its ports, and how it ends while calls are open."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from acp_spec.model.calls import ErrorBody, ExecuteResponse, Progress
from acp_spec.sdk.client import ComponentClient, StreamItem
from acp_spec.sdk.component import Component
from acp_spec.sdk.grpc_client import GrpcComponentClient
from acp_spec.sdk.http_client import HttpComponentClient
from acp_spec.sdk.serving import Address, NotAllowed, Server, parse_address
from acp_spec.sdk.tests.served import execute

PROGRAM = Path(__file__).with_name("serving_component.py")
END_S = 30.0
"""For a process to end on a shared core; what ends at all ends in under 2 s here, what hangs hangs
for minutes."""


class Process:
    def __init__(self, **environ: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environ},
        )
        stdout: IO[bytes] | None = self._process.stdout
        assert stdout is not None
        self.ready = json.loads(stdout.readline())

    def client(self, binding: str) -> ComponentClient:
        if binding == "http":
            return HttpComponentClient(self.ready["http"])
        return GrpcComponentClient(self.ready["grpc"])

    def signal(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        return await asyncio.to_thread(self._process.wait, END_S)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.fixture
def process() -> Iterator[Process]:
    started = Process(ACP_DRAIN_S="0.3")
    yield started
    started.close()


async def begun(stream: AsyncIterator[StreamItem]) -> None:
    """Wait until the handler runs: its first progress."""
    assert isinstance(await anext(stream), Progress)


def test_the_ready_line_says_where_it_serves(process: Process) -> None:
    assert process.ready["ready"] is True
    assert process.ready["http"].startswith("http://127.0.0.1:")
    assert process.ready["grpc"].startswith("grpc://127.0.0.1:")
    assert isinstance(process.ready["pid"], int)


@pytest.mark.parametrize("setting", ["ACP_PORT", "ACP_GRPC_PORT"])
def test_a_port_that_is_taken_is_one_line_with_the_setting_and_status_1(
    process: Process, setting: str
) -> None:
    taken = process.ready["http" if setting == "ACP_PORT" else "grpc"].rpartition(":")[2]
    second = subprocess.run(
        [sys.executable, str(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
        env={**os.environ, setting: taken},
    )
    assert (second.returncode, second.stdout) == (1, "")
    (line,) = second.stderr.splitlines()
    assert line.startswith(f"process: cannot listen on 127.0.0.1:{taken}: Address already in use; ")
    assert setting in line


def test_without_calls_sigterm_ends_it_at_once_and_cleanly(process: Process) -> None:
    process.signal()
    assert asyncio.run(process.ended()) == 0


@pytest.mark.parametrize("binding", ["http", "grpc"])
def test_sigterm_with_an_open_stream_asks_the_handler_to_stop_and_ends(
    process: Process, binding: str
) -> None:
    async def story() -> None:
        async with process.client(binding) as client:
            stream = client.execute_stream(execute("wait", timeout_ms=60_000))
            await begun(stream)
            process.signal()
            rest = [item async for item in stream]
            assert isinstance(rest[-1], ExecuteResponse | ErrorBody)
        assert await process.ended() == 0

    asyncio.run(story())


@pytest.mark.parametrize("binding", ["http", "grpc"])
def test_a_call_that_ends_within_the_drain_is_answered(binding: str) -> None:
    process = Process(ACP_DRAIN_S="20")

    async def story() -> None:
        async with process.client(binding) as client:
            stream = client.execute_stream(execute("finish", {"seconds": 0.4}))
            await begun(stream)
            process.signal()
            rest = [item async for item in stream]
            assert isinstance(rest[-1], ExecuteResponse)
            assert bytes(rest[-1].output) == b'"finished"'
        assert await process.ended() == 0

    try:
        asyncio.run(story())
    finally:
        process.close()


def test_a_handler_that_hears_nothing_does_not_hold_the_process(process: Process) -> None:
    async def story() -> None:
        async with process.client("http") as client:
            stream = client.execute_stream(execute("stuck", timeout_ms=60_000))
            await begun(stream)
            process.signal()
            assert await process.ended() == 1

    asyncio.run(story())


def test_a_second_signal_stops_at_once() -> None:
    process = Process(ACP_DRAIN_S="600")

    async def story() -> None:
        async with process.client("http") as client:
            stream = client.execute_stream(execute("stuck", timeout_ms=60_000))
            await begun(stream)
            process.signal()
            health = await client.health()
            while not isinstance(health, ErrorBody) and health.status.value == "SERVING":
                health = await client.health()
            process.signal()
            assert await process.ended() == 1

    try:
        asyncio.run(story())
    finally:
        process.close()


def test_while_draining_new_calls_are_refused_as_retryable() -> None:
    process = Process(ACP_DRAIN_S="20")

    async def story() -> None:
        async with process.client("http") as client:
            stream = client.execute_stream(execute("finish", {"seconds": 1}))
            await begun(stream)
            process.signal()
            health = await client.health()
            while not isinstance(health, ErrorBody) and health.status.value == "SERVING":
                health = await client.health()
            refused = await client.execute(execute("finish", {"seconds": 0}))
            assert isinstance(refused, ErrorBody)
            assert refused.error.retryable
            assert [item async for item in stream]

    try:
        asyncio.run(story())
    finally:
        process.close()


def test_the_ports_come_from_the_environment(free_port: Callable[[], int]) -> None:
    http, grpc = free_port(), free_port()
    process = Process(ACP_PORT=str(http), ACP_GRPC_PORT=str(grpc))
    try:
        assert process.ready["http"] == f"http://127.0.0.1:{http}"
        assert process.ready["grpc"] == f"grpc://127.0.0.1:{grpc}"
    finally:
        process.close()


def test_an_address_that_others_can_reach_needs_a_token() -> None:
    component = Component("open", "1.0.0")
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(NotAllowed, match="token"):
            Server(component, http=Address(host, 0), grpc=None)
        Server(component, http=Address(host, 0), grpc=None, token="secret")
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        Server(component, http=Address(host, 0), grpc=None)


@pytest.mark.parametrize("text", ["", "8080", ":8080", "host:", "host:x", "host:70000"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an address looks like"):
        parse_address(text)


def test_a_component_serves_within_a_loop_of_its_own_program() -> None:
    async def story() -> None:
        server = await Component("inside", "1.0.0").serve()
        async with HttpComponentClient(f"http://{server.http}") as client:
            assert not isinstance(await client.describe(), ErrorBody)
        assert await server.stop(drain_s=20)

    asyncio.run(story())


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert str(parse_address("[::1]:8080")) == "[::1]:8080"
