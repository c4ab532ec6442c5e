"""What was observed is found again: by its words, by its age, by its owner only, and once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from acp_spec import InProcess, build_context
from acp_spec.model.calls import (
    ErrorBody,
    Memory,
    Observation,
    ObserveRequest,
    ObserveResponse,
    Recall,
)
from acp_spec.sdk.client import ComponentClient
from acp_spec.sdk.values import read, write
from reference_components.memory import notebook
from reference_components.memory.component import make

Story = Callable[[ComponentClient], Awaitable[None]]


def tell(path: Path, story: Story) -> None:
    async def run() -> None:
        async with InProcess(make(path / "memory.db")) as client:
            await story(client)

    asyncio.run(run())


def request(
    *data: object, query: str = "", limit: int = 5, customer: str = "ada", tenant: str = ""
) -> ObserveRequest:
    observations = tuple(Observation(step="s", kind="result", data=write(item)) for item in data)
    return ObserveRequest(
        context=build_context(labels={"customer": customer}, tenant=tenant),
        observations=observations,
        recall=Recall(query=query, limit=limit) if query else None,
    )


async def recalled(client: ComponentClient, asked: ObserveRequest) -> list[Memory]:
    answer = await client.observe(asked)
    assert isinstance(answer, ObserveResponse), answer
    return list(answer.memory)


def test_the_best_match_comes_first_with_a_score_and_its_source(tmp_path: Path) -> None:
    async def story(client: ComponentClient) -> None:
        await client.observe(request({"action": "cards.freeze", "card": "card-0001"}))
        await client.observe(request({"action": "rates.convert", "to": "CHF"}))
        found = await recalled(client, request(query="please unfreeze my card"))
        assert [read(item.data) for item in found] == [
            {"action": "cards.freeze", "card": "card-0001"},
            {"action": "rates.convert", "to": "CHF"},
        ]
        assert found[0].score > 0 == found[1].score
        assert found[0].source.startswith("session ")

    tell(tmp_path, story)


def test_what_relevance_leaves_of_the_limit_is_filled_with_the_newest(tmp_path: Path) -> None:
    async def story(client: ComponentClient) -> None:
        for number in range(4):
            await client.observe(request({"number": number}))
        found = await recalled(client, request(query="unrelated", limit=2))
        assert [read(item.data) for item in found] == [{"number": 3}, {"number": 2}]

    tell(tmp_path, story)


def test_nobody_sees_what_belongs_to_another_customer_or_tenant(tmp_path: Path) -> None:
    async def story(client: ComponentClient) -> None:
        await client.observe(request({"secret": "ada"}, customer="ada", tenant="one"))
        for customer, tenant in (("ben", "one"), ("ada", "two")):
            asked = request(query="secret ada", customer=customer, tenant=tenant)
            assert await recalled(client, asked) == []
        assert await recalled(client, request(query="secret", customer="ada", tenant="one"))

    tell(tmp_path, story)


def test_a_repeat_stores_nothing_and_gets_the_first_answer_also_after_a_restart(
    tmp_path: Path,
) -> None:
    asked = request({"n": 1}, query="n")
    answers: list[ObserveResponse | ErrorBody] = []

    async def story(client: ComponentClient) -> None:
        answers.append(await client.observe(asked))
        await client.observe(request({"n": 2}))

    async def again(client: ComponentClient) -> None:
        answers.append(await client.observe(asked))
        assert len(await recalled(client, request(query="n"))) == 2

    tell(tmp_path, story)
    tell(tmp_path, again)
    assert answers[0] == answers[1]


def test_the_same_call_with_other_observations_is_a_conflict(tmp_path: Path) -> None:
    async def story(client: ComponentClient) -> None:
        asked = request({"n": 1})
        await client.observe(asked)
        context = msgspec.structs.replace(asked.context, body_digest="0" * 64)
        answer = await client.observe(msgspec.structs.replace(asked, context=context))
        assert isinstance(answer, ErrorBody)
        assert answer.error.reason == "IDEMPOTENCY_CONFLICT"

    tell(tmp_path, story)


@pytest.mark.parametrize("query", ['"', "a OR", "NEAR(", "* - ^", "x" * 9000, "ünïcödé 🙂"])
def test_no_query_is_taken_for_search_syntax(tmp_path: Path, query: str) -> None:
    async def story(client: ComponentClient) -> None:
        await client.observe(request({"text": "ünïcödé"}))
        assert isinstance(await client.observe(request(query=query)), ObserveResponse)

    tell(tmp_path, story)


def test_numbers_come_back_as_they_were_stored(tmp_path: Path) -> None:
    exact = msgspec.Raw(b'{"amount":0.10,"big":9007199254740993}')

    async def story(client: ComponentClient) -> None:
        await client.observe(request(exact))
        (found,) = await recalled(client, request(query="amount"))
        assert bytes(found.data) == bytes(exact)

    tell(tmp_path, story)


def test_the_oldest_are_forgotten_beyond_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook, "MEMORIES_PER_OWNER_MAX", 3)

    async def story(client: ComponentClient) -> None:
        await client.observe(request(*range(10)))
        found = await recalled(client, request(query="result", limit=50))
        assert sorted(int(bytes(item.data)) for item in found) == [7, 8, 9]

    tell(tmp_path, story)
