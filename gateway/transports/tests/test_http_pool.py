"""The pool alone: how connections are kept, limited, aged and dropped, whatever a peer says."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.networks import LOOPBACK_NETWORKS
from gateway.transports.address_guard import HTTP_SCHEMES, AddressGuard, parse_component_url
from gateway.transports.http_link import Fault, Response
from gateway.transports.http_pool import HttpPool, PoolLimits
from gateway.transports.tests.raw_peer import GUARD, Peer, answering, http, peer, run

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
OK = http(b"{}")


class Got:
    """An exchange that keeps what it got."""

    def __init__(self, request: bytes = REQUEST) -> None:
        self.request = request
        self.result: asyncio.Future[Response | Fault] = asyncio.get_running_loop().create_future()

    def payload(self) -> bytes:
        return self.request

    def answered(self, response: Response) -> None:
        assert not self.result.done(), "told twice"
        self.result.set_result(response)

    def failed(self, fault: Fault, message: str) -> None:
        assert not self.result.done(), "told twice"
        assert message
        self.result.set_result(fault)


def pool_to(port: int, limits: PoolLimits = PoolLimits()) -> HttpPool:
    target = parse_component_url(f"http://127.0.0.1:{port}", HTTP_SCHEMES)
    return HttpPool(target, GUARD, limits=limits)


async def fetch(pool: HttpPool, *, fresh: bool = False) -> Response | Fault:
    exchange = Got()
    pool.submit(exchange, fresh=fresh)
    return await exchange.result


async def emptied(pool: HttpPool) -> None:
    """Until the pool has noticed that its last connection is gone."""
    for _ in range(2_000):
        if not pool.connections:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the connection is still in the pool")


async def status(pool: HttpPool) -> int:
    got = await fetch(pool)
    assert isinstance(got, Response)
    return got.status


def test_many_at_once_stay_within_the_limit_and_all_are_answered() -> None:
    async def story() -> None:
        async with peer(answering(OK)) as served:
            pool = pool_to(served.port, PoolLimits(connections_max=3))
            assert await asyncio.gather(*(status(pool) for _ in range(50))) == [200] * 50
            assert served.connections <= 3
            assert pool.connections <= 3
            await pool.close()

    run(story())


def test_more_than_may_wait_is_refused_at_once() -> None:
    async def story() -> None:
        begun = asyncio.Event()

        async def hang(peer: Peer) -> None:
            await peer.request()
            begun.set()
            await asyncio.sleep(60)

        async with peer(hang) as served:
            pool = pool_to(served.port, PoolLimits(connections_max=1, waiting_max=2))
            exchanges = [Got() for _ in range(5)]
            pool.submit(exchanges[0])
            await begun.wait()  # the first is on its way before the others queue
            for exchange in exchanges[1:]:
                pool.submit(exchange)
            for exchange in exchanges[3:]:
                assert await exchange.result is Fault.OVERLOADED
            assert not any(e.result.done() for e in exchanges[:3])
            await pool.close()
            results = [await e.result for e in exchanges[:3]]
            assert results.count(Fault.CUT) == 1
            assert results.count(Fault.NOT_SENT) == 2

    run(story())


def test_a_fresh_call_takes_no_connection_that_was_idle_for_long() -> None:
    async def story() -> None:
        async with peer(answering(OK)) as served:
            patient = pool_to(served.port, PoolLimits(fresh_max_s=60))
            await fetch(patient)
            await fetch(patient, fresh=True)
            assert served.connections == 1
            await patient.close()

        async with peer(answering(OK)) as served:
            pool = pool_to(served.port, PoolLimits(fresh_max_s=0.05))
            await fetch(pool)
            assert served.connections == 1
            await asyncio.sleep(0.1)
            await fetch(pool, fresh=True)
            assert served.connections == 2
            await fetch(pool)
            assert served.connections == 2
            await pool.close()

    run(story())


def test_idle_connections_are_closed_before_the_peer_would() -> None:
    async def story() -> None:
        async with peer(answering(OK)) as served:
            pool = pool_to(served.port, PoolLimits(idle_max_s=0.05))
            await asyncio.gather(*(fetch(pool) for _ in range(3)))
            assert served.connections == 3
            await emptied(pool)
            await fetch(pool)
            assert served.connections == 4
            await pool.close()

    run(story())


def test_a_peer_that_closes_an_idle_connection_is_dialled_anew() -> None:
    async def story() -> None:
        async def once(peer: Peer) -> None:
            await peer.request()
            await peer.say(OK)

        async with peer(once) as served:
            pool = pool_to(served.port)
            for _ in range(3):
                assert await status(pool) == 200
                await emptied(pool)
            assert served.connections == 3
            await pool.close()

    run(story())


@pytest.mark.parametrize(
    "first",
    [
        OK + http(b'{"evil":1}'),
        OK + b"garbage",
        http(b"{}", extra="connection: close\r\n"),
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ],
)
def test_a_connection_that_is_not_to_trust_carries_nothing_more(first: bytes) -> None:
    async def story() -> None:
        responses = [first, OK, OK]

        async def behave(peer: Peer) -> None:
            while await peer.request() is not None:
                await peer.say(responses.pop(0))

        async with peer(behave) as served:
            pool = pool_to(served.port)
            got = await fetch(pool)
            assert isinstance(got, Response)
            assert got.body == b"{}"
            got = await fetch(pool)
            assert isinstance(got, Response)
            assert got.body == b"{}"
            assert served.connections == 2
            await pool.close()

    run(story())


def test_words_nobody_asked_for_close_an_idle_connection() -> None:
    async def story() -> None:
        async def behave(peer: Peer) -> None:
            await peer.request()
            await peer.say(OK)
            await asyncio.sleep(0.02)
            await peer.say(http(b'{"evil":1}'))
            await peer.request()

        async with peer(behave) as served:
            pool = pool_to(served.port)
            await fetch(pool)
            await emptied(pool)
            assert served.connections == 1
            await pool.close()

    run(story())


def test_interim_responses_are_not_the_answer() -> None:
    async def story() -> None:
        interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        async with peer(answering(interim + OK)) as served:
            pool = pool_to(served.port)
            assert [await status(pool) for _ in range(3)] == [200] * 3
            assert served.connections == 1
            await pool.close()

    run(story())


def test_an_early_answer_to_a_request_still_being_written_ends_the_connection() -> None:
    async def story() -> None:
        async def early(peer: Peer) -> None:
            await peer.reader.readuntil(b"\r\n\r\n")
            await peer.say(http(b"{}", status="413 Too Large"))
            await asyncio.sleep(60)

        async with peer(early) as served:
            pool = pool_to(served.port)
            exchange = Got(
                b"POST / HTTP/1.1\r\ncontent-length: 20000000\r\n\r\n" + b" " * 20_000_000
            )
            pool.submit(exchange)
            got = await exchange.result
            assert isinstance(got, Response)
            assert got.status == 413
            assert pool.connections == 0
            await pool.close()

    run(story())


def test_a_failed_connect_fails_the_one_it_was_for_and_aborted_ones_hear_nothing(
    free_port: Callable[[], int],
) -> None:
    async def story() -> None:
        pool = pool_to(free_port())
        exchanges = [Got() for _ in range(4)]
        for exchange in exchanges:
            pool.submit(exchange)
        assert not pool.abort(exchanges[1])
        for exchange in (exchanges[0], exchanges[2], exchanges[3]):
            assert await exchange.result is Fault.NOT_CONNECTED
        await asyncio.sleep(0)
        assert not exchanges[1].result.done()
        await pool.close()

    run(story())


def test_the_next_address_is_tried_when_one_refuses() -> None:
    async def story() -> None:
        async def both(host: str, port: int) -> tuple[str, ...]:
            return ("127.0.0.2", "127.0.0.1")

        async with peer(answering(OK)) as served:
            target = parse_component_url(f"http://two.example:{served.port}", HTTP_SCHEMES)
            pool = HttpPool(target, AddressGuard(LOOPBACK_NETWORKS, resolve=both))
            assert await status(pool) == 200
            await pool.close()

    run(story())


def test_a_name_that_does_not_resolve_is_no_connection() -> None:
    async def story() -> None:
        async def nowhere(host: str, port: int) -> tuple[str, ...]:
            raise OSError("no such name")

        target = parse_component_url("http://nowhere.example:80", HTTP_SCHEMES)
        pool = HttpPool(target, AddressGuard(LOOPBACK_NETWORKS, resolve=nowhere))
        assert await fetch(pool) is Fault.NOT_CONNECTED
        await pool.close()

    run(story())


PIECES = st.lists(
    st.sampled_from(
        [
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"content-length: 2\r\n",
            b"transfer-encoding: chunked\r\n",
            b"content-type: application/json\r\n",
            b"\r\n",
            b"{}",
            b"2\r\n{}\r\n",
            b"0\r\n\r\n",
            b"\x00\xff",
        ]
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(st.lists(PIECES, min_size=1, max_size=4))
def test_whatever_a_peer_says_each_exchange_is_told_exactly_once(
    answers: list[list[bytes]],
) -> None:
    async def story() -> None:
        waiting = list(answers)

        async def behave(peer: Peer) -> None:
            while await peer.request() is not None and waiting:
                for piece in waiting.pop(0):
                    await peer.say(piece)
                await asyncio.sleep(0)
                if not waiting or len(waiting) % 2:
                    return

        async with peer(behave) as served:
            pool = pool_to(served.port)
            for _ in answers:
                got = await asyncio.wait_for(_fetch_or_abort(pool), 5)
                assert not isinstance(got, Response) or got.status == 200
            await pool.close()
            assert pool.connections == 0

    run(story())


async def _fetch_or_abort(pool: HttpPool) -> Response | Fault | None:
    exchange = Got()
    pool.submit(exchange)
    done, _ = await asyncio.wait({exchange.result}, timeout=0.05)
    if not done:
        pool.abort(exchange)
        return None
    return exchange.result.result()
