"""The counter counts on disk: once per call by key, every time without, and tells who did."""

import asyncio
from pathlib import Path

import msgspec

from acp_spec import InProcess, SideEffect, build_context
from acp_spec.model.calls import ErrorBody, ExecuteRequest, ExecuteResponse
from acp_spec.sdk.client import ComponentClient
from acp_spec.sdk.values import Json, read, write
from reference_components.counter.component import make


def request(action: str, arguments: object) -> ExecuteRequest:
    context = build_context(action, arguments)
    return ExecuteRequest(context=context, action=action, arguments=write(arguments))


def repeated(first: ExecuteRequest, attempt: int) -> ExecuteRequest:
    context = msgspec.structs.replace(first.context, attempt=attempt)
    return msgspec.structs.replace(first, context=context)


async def output(client: ComponentClient, asked: ExecuteRequest) -> Json:
    answer = await client.execute(asked)
    assert isinstance(answer, ExecuteResponse), answer
    return read(answer.output)


async def attempts(client: ComponentClient, counted: ExecuteRequest) -> Json:
    told = await output(client, request("counter.of_call", {"call_id": counted.context.call_id}))
    assert isinstance(told, dict)
    return told["attempts"]


def test_by_key_counts_once_and_without_a_key_every_time(tmp_path: Path) -> None:
    async def story() -> None:
        async with InProcess(make(tmp_path / "counts.db")) as client:
            keyed, plain = request("counter.add", {}), request("counter.add_once", {})
            for asked in (keyed, plain):
                for attempt in (1, 2):
                    await output(client, repeated(asked, attempt))
            assert await attempts(client, keyed) == [1]
            assert await attempts(client, plain) == [1, 2]

    asyncio.run(story())


def test_counts_survive_a_restart_and_so_does_the_promise_of_by_key(tmp_path: Path) -> None:
    async def story() -> None:
        asked = request("counter.add", {"amount": 3})
        for attempt in (1, 2):
            async with InProcess(make(tmp_path / "counts.db")) as client:
                await output(client, repeated(asked, attempt))
        async with InProcess(make(tmp_path / "counts.db")) as client:
            assert await output(client, request("counter.total", {})) == {"count": 1, "amount": 3}

    asyncio.run(story())


def test_a_call_told_to_fail_afterwards_has_counted(tmp_path: Path) -> None:
    async def story() -> None:
        async with InProcess(make(tmp_path / "counts.db")) as client:
            asked = request("counter.add_once", {"then_fail": "UNKNOWN"})
            answer = await client.execute(asked)
            assert isinstance(answer, ErrorBody)
            assert answer.error.side_effect is SideEffect.UNKNOWN
            assert await attempts(client, asked) == [1]

    asyncio.run(story())
