"""Payloads pass byte for byte: any JSON text, over both bindings, through real sockets."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_spec.model.calls import PlanRequest, PlanResponse
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.sdk.call import Call
from acp_spec.sdk.component import Component
from acp_spec.sdk.serving import Server
from acp_spec.sdk.testing import build_context
from acp_spec.sdk.tests.served import Background, Binding, client_of, execute, output_of
from acp_spec.sdk.values import JsonText, write

DIGITS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)
STRINGS = st.text(max_size=8).map(json.dumps) | st.text(max_size=8).map(
    lambda text: json.dumps(text, ensure_ascii=False)
)
SCALARS = st.sampled_from(["null", "true", "false", '"\\u00e9\\/"']) | DIGITS | STRINGS
GAPS = st.sampled_from(["", " ", "\n\t", "  "])


def _list(parts: tuple[list[str], str]) -> str:
    items, gap = parts
    return f"[{gap}{f'{gap},{gap}'.join(items)}{gap}]"


def _object(parts: tuple[dict[str, str], str]) -> str:
    members, gap = parts
    inner = f"{gap},".join(f"{key}{gap}:{gap}{value}" for key, value in members.items())
    return f"{{{gap}{inner}{gap}}}"


# Keys that differ as text could be the same string by their escapes: so keys are plain here.
KEYS = st.from_regex(r'"[a-z]{1,6}"', fullmatch=True)
TEXTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.tuples(st.lists(inner, max_size=3), GAPS).map(_list)
        | st.tuples(st.dictionaries(KEYS, inner, max_size=3), GAPS).map(_object)
    ),
    max_leaves=8,
)


def component() -> Component:
    made = Component("bytes", "1.0.0")

    @made.action("echo")
    async def echo(arguments: object, call: Call) -> object:
        return JsonText(call.arguments_text)

    @made.plan
    async def plan(request: PlanRequest, call: Call) -> Plan:
        return Plan(sub_goals=(SubGoal(id="a", action="echo", arguments=request.input),))

    return made


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Background(component()) as open_server:
        yield open_server


@pytest.mark.parametrize("sent_over", [Binding.HTTP, Binding.GRPC], ids=["http", "grpc"])
@given(texts=st.lists(TEXTS, min_size=1, max_size=20))
@settings(max_examples=15)
def test_any_json_text_comes_back_byte_for_byte(
    server: Server, sent_over: Binding, texts: list[str]
) -> None:
    async def story() -> None:
        async with client_of(server, sent_over) as client:
            for text in texts:
                data = JsonText(text.encode())
                assert output_of(await client.execute(execute("echo", data))) == data
                request = PlanRequest(context=build_context(), input=write(data))
                planned = await client.plan(request)
                assert isinstance(planned, PlanResponse)
                assert bytes(planned.plan.sub_goals[0].arguments) == data

    asyncio.run(story())
