"""Code that nobody has read is answered, and held: through the SDK, as a gateway would call it."""

import asyncio
import json

from acp_spec import InProcess, build_context
from acp_spec.model.calls import ErrorBody, ExecuteRequest, ExecuteResponse
from acp_spec.sdk.sandbox import Limits
from acp_spec.sdk.values import read, write
from reference_components.scratchpad.component import make

AMPLE = Limits(wall_ms=20_000, cpu_ms=20_000, memory_bytes=128 * 1024 * 1024)


def ask(source: str, input: object = None) -> ExecuteResponse | ErrorBody:
    arguments = {"source": source, "input": input}
    request = ExecuteRequest(
        context=build_context("python.run", arguments, timeout_ms=30_000),
        action="python.run",
        arguments=write(arguments),
    )

    async def story() -> ExecuteResponse | ErrorBody:
        async with InProcess(make(AMPLE)) as client:
            answer = await client.execute(request)
            assert isinstance(answer, ExecuteResponse | ErrorBody)
            return answer

    return asyncio.run(story())


def test_it_gives_what_the_code_made_of_its_input() -> None:
    answer = ask("print('hm'); result = [x * x for x in input]", [1, 2, 3])
    assert isinstance(answer, ExecuteResponse), answer
    assert read(answer.output) == {"result": [1, 4, 9], "printed": "hm\n"}


def test_greedy_code_is_held_and_the_limit_is_named() -> None:
    answer = ask("x = [bytes(1 << 20) + b'1' for _ in range(4000)]")
    assert isinstance(answer, ErrorBody)
    assert answer.error.reason == "SANDBOX_LIMIT"
    assert json.loads(bytes(answer.error.details))["limit"] == "MEMORY"


def test_code_finds_nothing_of_the_component() -> None:
    answer = ask("import os; result = [os.environ.get('ACP_TOKEN'), os.listdir('/')]")
    assert isinstance(answer, ExecuteResponse), answer
    token, root = json.loads(bytes(answer.output))["result"]
    assert token is None
    assert not {"root", "home", "var"} & set(root)
