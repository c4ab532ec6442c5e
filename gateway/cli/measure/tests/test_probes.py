"""Probes of real parts: a directory, this machine, a server on loopback. No figure is judged."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from acp_spec.model.card import Card
from acp_spec.model.context import Signals
from acp_spec.model.enums import Transport
from acp_spec.model.session import Component, Lease
from gateway.cli.measure.disk_probe import percentile, probe_disk
from gateway.cli.measure.machine_probe import probe_machine
from gateway.cli.measure.metrics_page import Figures, Service, figures
from gateway.cli.measure.network_probe import Way, probe_ways
from gateway.cli.measure.raw_load import Answers, Bounds, closed_loop, place_of
from gateway.telemetry.metrics import AttemptMeasure, Metrics

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"


async def answering(answer: bytes, ask: Callable[[int], Awaitable[Answers]]) -> Answers:
    """What `ask(port)` gets from a server that answers every request so; b"" hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while answer:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        return await ask(server.sockets[0].getsockname()[1])


async def load(port: int) -> Answers:
    place = place_of(f"http://127.0.0.1:{port}/base")
    bounds = Bounds(connections=3, requests=30, seconds=20.0, keep_bodies=True)
    return await closed_loop(place, lambda _: place.request("GET", "/x"), bounds=bounds)


@pytest.mark.parametrize(("answer", "status"), [(PLAIN, 200), (CHUNKED, 201)])
def test_every_request_of_the_loop_is_answered_once(answer: bytes, status: int) -> None:
    answers = asyncio.run(answering(answer, load))
    assert answers.statuses == {status: 30}
    assert answers.bodies == [b"ok"] * 30
    assert answers.only(status)
    assert answers.per_s > 0


def test_connections_that_break_are_counted_and_end_the_loop() -> None:
    answers = asyncio.run(answering(b"", load))
    assert answers.broken == 3
    assert not answers.only(200)


def test_an_address_that_nobody_listens_at_is_no_answer(free_port: Callable[[], int]) -> None:
    answers = asyncio.run(load(free_port()))
    assert answers.count == 0
    assert answers.broken


def test_requests_carry_host_token_and_the_base_path() -> None:
    place = place_of("https://gateway.example:8443/base/", token="secret")
    request = place.request("POST", "/v1/sessions", body=b"{}").decode()
    assert request.startswith("POST /base/v1/sessions HTTP/1.1\r\nhost: gateway.example:8443\r\n")
    assert "authorization: Bearer secret\r\n" in request
    assert "content-length: 2\r\n" in request
    assert (place.tls, place.port) == (True, 8443)


def test_the_disk_is_measured_and_left_as_it_was(tmp_path: Path) -> None:
    disk = probe_disk(tmp_path, seconds=0.05)
    assert min(disk.syncs_per_s, disk.writes_per_s, disk.written_mb_per_s) > 0
    assert disk.sync_p50_ms <= disk.sync_p99_ms
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        probe_disk(tmp_path / "none", seconds=0.05)


def test_the_machine_has_cpus_memory_and_timers() -> None:
    machine = probe_machine()
    assert machine.cpus > 0
    assert 0 < machine.memory_available_mb <= machine.memory_total_mb
    assert machine.timer_late_p99_ms >= 0


def test_a_share_of_values_is_one_of_them() -> None:
    assert percentile([], 0.5) == 0.0
    assert percentile([3.0, 1.0, 2.0], 0.0) == 1.0
    assert percentile([3.0, 1.0, 2.0], 0.99) == 3.0


def test_a_gateways_own_metrics_are_read_back() -> None:
    metrics = Metrics()
    metrics.watch("process_cpu_seconds", "CPU", read=lambda: 2.5)
    metrics.journal_flushed(4, flush_s=0.25)
    for _ in range(2):
        metrics.attempt_ended(
            AttemptMeasure(
                component="fees",
                outcome="SUCCEEDED",
                wait_ms=1.0,
                service_ms=30.0,
                example=("", ""),
            )
        )
    found = figures(metrics.render()[1].decode())
    assert (found.cpu_s, found.flushes, found.flush_s) == (2.5, 1.0, 0.25)
    assert found.services == {"fees": Service(calls=2.0, seconds=0.06)}
    assert found.since(Figures(cpu_s=1.0)).cpu_s == 1.5


def component(url: str, transport: Transport = Transport.HTTP) -> Component:
    return Component(
        component_id="cmp_1",
        card=Card(name="fees", version="1.0.0"),
        lease=Lease(lease_seconds=15, expires_at="2026-11-29T00:00:00Z"),
        url=url,
        transport=transport,
        signals=Signals(),
    )


def test_ways_are_measured_told_to_lead_nowhere_or_left_out(
    free_port: Callable[[], int],
) -> None:
    seen = Figures(services={"fees": Service(calls=10.0, seconds=0.2)})
    (lost,) = probe_ways([component(f"http://127.0.0.1:{free_port()}")], seen)
    assert lost.problem
    (attached,) = probe_ways([component("")], seen)
    assert (attached.problem, attached.round_trip_p50_ms) == ("", 0.0)
    assert attached.service_ms == pytest.approx(20.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"grpc://127.0.0.1:{server.getsockname()[1]}"
        way: Way = probe_ways([component(url, Transport.GRPC)], seen)[0]
    assert way.problem == ""
    assert way.connect_p50_ms > 0
