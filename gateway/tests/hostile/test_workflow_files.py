"""Workflow files that would eat the gateway: bombs, cycles, depth, tags, expressions out of bounds.

Each is answered with what is wrong, quickly; while it is read others are still served, and what it
is read with keeps its memory.
"""

import json
import time
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_spec.bindings.routes import GATEWAY
from acp_spec.model import gateway_calls as calls
from gateway.tests.asking import Asker
from gateway.tests.e2e.client import Client
from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.outcomes import agreed
from gateway.tests.hostile.served_others import others_are_served

# One file is read by one thread of a busy machine; a bomb would take minutes.
ANSWER_S_MAX: Final = 5.0
HEAD: Final = "workflow: bomb\nversion: 1.0.0\n"


def laughs(levels: int, width: int = 9) -> str:
    """Each line is the one before, nine times."""
    lines = ["a0: &a0 lol"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join(lines)


def step(**fields: str) -> str:
    stated = {"name": "act", "role": "execute", "component": "echo", "action": "echo"}
    return json.dumps({**stated, **fields})


FILES: Final[dict[str, str]] = {
    "a billion laughs": HEAD + laughs(12),
    "a billion laughs in keys": HEAD + laughs(12).replace("a1: ", "? "),
    "a merge bomb": HEAD
    + "a: &a {x: 1}\n"
    + "\n".join(
        f"b{n}: &b{n} {{<<: [*a, *b{n - 1}]}}" if n else "b0: &b0 {<<: *a}" for n in range(30)
    ),
    "a cycle": HEAD + "steps: &a [*a]\n",
    "a cycle of mappings": HEAD + "contract: &a {x: *a}\nsteps: []\n",
    "a merge with itself": HEAD + "contract: &a {<<: *a}\n",
    "an alias of nothing": HEAD + "steps: *nothing\n",
    "many anchors": HEAD + "steps: [" + ",".join(f"&a{n} x" for n in range(20_000)) + "]\n",
    "a Python object": HEAD + 'steps: !!python/object/apply:os.system ["touch /tmp/owned"]\n',
    "a Python name": HEAD + "steps: !!python/name:os.system\n",
    "a local tag": HEAD + "steps: !evil [1]\n",
    "binary": HEAD + "description: !!binary R0lGODlhAQABAAAAACw=\n",
    "a set": HEAD + "steps: !!set {a, b}\n",
    "a directive": "%YAML 9.9\n---\n" + HEAD,
    "a tag directive": "%TAG ! tag:evil,2000:\n---\n" + HEAD + "steps: !x y\n",
    "many documents": (HEAD + "---\n") * 5_000,
    "deep brackets": HEAD + "steps: " + "[" * 20_000,
    "deep closed brackets": HEAD + "steps: " + "[" * 5_000 + "]" * 5_000,
    "deep braces": HEAD + "steps: " + "{a: " * 20_000,
    "deep lists": HEAD + "steps:\n" + "".join("  " * n + "-\n" for n in range(400)),
    "deep mappings": HEAD + "\n".join(" " * n + "a:" for n in range(2_000)),
    "one line of dashes": HEAD + "steps: \n" + "- " * 50_000,
    "a huge key": HEAD + "k" * 200_000 + ": 1\n",
    "a huge value": HEAD + "description: " + "v" * 250_000 + "\n",
    "many keys": HEAD + "\n".join(f"k{n}: 1" for n in range(20_000)),
    "one key many times": HEAD + "k: 1\n" * 30_000,
    "a key that is a list": HEAD + "? [a, b]\n: 1\n",
    "a key that is null": HEAD + "~: 1\n",
    "question marks": HEAD + "? " * 20_000,
    "many steps": HEAD + "steps: [" + ",".join(step(name=f"s{n}") for n in range(3_000)) + "]\n",
    "tabs": HEAD + "steps:\n\t- a\n",
    "a zero": HEAD + "description: a\0b\n",
    "an escape of half a pair": HEAD + 'description: "\\ud800"\n',
    "a mark of byte order": "\ufeff" + HEAD + "steps: []\n",
    "no end of a text": HEAD + "description: '" + "x" * 100_000,
    "colons": ":" * 100_000,
    "spaces": " " * 200_000 + "a: 1",
    "line ends": "\n" * 250_000 + "a: 1",
    "comments": "#\n" * 100_000 + "a: 1",
    "over the size": HEAD + "#" + "x" * 300_000,
    "far over the size": HEAD + "#" + "x" * 4_000_000,
    "numbers": HEAD + f"limits: {{max_loops: {'9' * 5_000}, deadline_ms: 1e400}}\n",
    "base sixty": HEAD + "limits: {max_loops: " + "1:" * 20_000 + "1}\n",
    "an octal": HEAD + "limits: {max_loops: 0o" + "7" * 20_000 + "}\n",
    "JSON that is deep": '{"steps":' * 20_000,
    "JSON with a key twice": '{"workflow":"a","workflow":"b","version":"1.0.0","steps":[]}',
    "a list": "[" + "1," * 100_000 + "1]",
    "a text": "hello",
    "nothing but null": "null",
}
EXPRESSIONS: Final[dict[str, str]] = {
    "over 2 KiB": "input.a" + " + 1" * 600,
    "far over 2 KiB": "1" + "+1" * 100_000,
    "nested macros": "input.map(x, input.map(y, x + y))",
    "deep parentheses": "(" * 900 + "1" + ")" * 900,
    "deep lists": "[" * 900 + "]" * 900,
    "deep negation": "!" * 1_500 + "true",
    "deep minus": "-" * 1_500 + "1",
    "deep conditions": "true ? " * 250 + "1" + " : 1" * 250,
    "deep members": "input" + ".a" * 900,
    "a regular expression that explodes": "input.matches('(a+)+$')",
    "a counted expression": "input.matches('(a{1000}){1000}')",
    "a broken expression": "input.matches('(')",
    "an endless text": "'" + "x" * 3_000 + "'",
    "an unclosed text": "'" + "x" * 100,
    "a raw zero": "input == '\0'",
    "half a pair": "input == '\\ud800'",
    "an unknown function": "system('id')",
    "an unknown name": "os.environ",
    "a comprehension of Python": "[x for x in input]",
    "a template": "{{ 7 * 7 }}",
    "a huge number": "9" * 1_000,
    "a huge exponent": "1e999999",
    "nothing": "",
    "spaces": " " * 2_000,
    "a comment": "// " + "x" * 1_000,
    "an index of a huge number": "input[99999999999999999999]",
    "a negative index": "input[-1]",
}


def validated(asker: Asker, source: str) -> list[dict[str, object]]:
    """What both bindings find wrong with the file, which takes no longer than it may."""
    message = calls.ValidateWorkflowRequest(source=source)
    began = time.monotonic()
    http = agreed(asker, GATEWAY["validate_workflow"], message)
    assert time.monotonic() - began < 2 * ANSWER_S_MAX
    if not http.is_success:
        assert http.reason in ("INVALID_REQUEST", "PAYLOAD_TOO_LARGE"), http
        return []
    told = json.loads(http.data)
    assert told["valid"] is False, source[:200]
    problems: list[dict[str, object]] = told["problems"]
    return problems


@pytest.mark.parametrize("kind", sorted(FILES))
def test_no_file_eats_the_gateway(asker: Asker, gateway: Target, kind: str) -> None:
    with others_are_served(gateway):
        for problem in validated(asker, FILES[kind]):
            assert problem["line"], problem
            assert len(str(problem["message"])) < 2_000
        put = calls.PutWorkflowRequest(name="bomb", version="1.0.0", source=FILES[kind])
        told = agreed(asker, GATEWAY["put_workflow"], put)
        assert not told.is_success
    gateway.assert_well()


@pytest.mark.parametrize("kind", sorted(EXPRESSIONS))
@pytest.mark.parametrize("place", ["condition", "mapping", "output"])
def test_no_expression_eats_the_gateway(
    asker: Asker, gateway: Target, kind: str, place: str
) -> None:
    text = EXPRESSIONS[kind]
    act: dict[str, object] = {
        "name": "act",
        "role": "execute",
        "component": "echo",
        "action": "echo",
    }
    file: dict[str, object] = {"workflow": "bomb", "version": "1.0.0", "steps": [act]}
    match place:
        case "condition":
            act["condition"] = text
        case "mapping":
            act["input_mapping"] = {"x": text}
        case _:
            file["output"] = text
    with others_are_served(gateway):
        message = calls.ValidateWorkflowRequest(source=json.dumps(file))
        told = agreed(asker, GATEWAY["validate_workflow"], message)
        assert told.is_success or told.reason == "INVALID_REQUEST", told


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    source=st.lists(
        st.sampled_from(
            ["workflow: a\n", "version: 1.0.0\n", "steps:\n", "  - ", "name: x\n", "- ", "? ", ": ",
             "&a ", "*a ", "<<: ", "!!", "!", "|\n", ">\n", "'", '"', "[", "]", "{", "}", ",", "#",
             "%YAML 1.2\n", "---\n", "...\n", "\t", " ", "\n", "\\ud800", "\0", "\x85", "\u2028"]
        ) | st.text(max_size=3),
        max_size=40,
    ).map("".join)
)  # fmt: skip
def test_no_file_whatever_is_a_fault_of_the_server(asker: Asker, source: str) -> None:
    message = calls.ValidateWorkflowRequest(source=source)
    http, grpc = asker.both(GATEWAY["validate_workflow"], message)
    for outcome in (http, grpc):
        assert outcome.is_success or outcome.reason == "INVALID_REQUEST", (source, outcome)
    if source.strip():
        assert http.is_success == grpc.is_success, (source, http, grpc)


def test_the_worst_expressions_that_are_admitted_hold_nobody_up(
    asker: Asker, client: Client, gateway: Target, plain: str
) -> None:
    """A workflow made of them, over the largest values, while others ask."""
    worst = {
        "a": "[input.l, input.l] == [input.l, input.l]",
        "b": "size(input.s + input.s) + size(input.l)",
        "c": "input.l.map(x, x + 1).filter(x, x > 2).map(x, {'a': x, 'b': [x, x]})",
        "d": "input.s.matches('(x+x+)+y')",
        "e": "input.l.exists(x, x in input.l)",
        "f": "input.o.map(x, x.a.matches('^[a-z]+$') ? x.a + x.a : '')",
        "g": "+".join(["size(input.s)"] * 140),
    }
    acts = "".join(
        f"  - {{name: s{n}, role: execute, component: echo, action: echo, "
        f"input_mapping: {json.dumps(worst)}}}\n"
        for n in range(8)
    )
    client.put_workflow(f"workflow: worst\nversion: 1.0.0\nsteps:\n{acts}output: s7.status\n")
    value = {"l": list(range(100)), "s": "x" * 30_000, "o": [{"a": "abc"}] * 100}
    with others_are_served(gateway):
        view = client.run("worst", json.dumps(value)).json
    assert view["status"] in ("SUCCEEDED", "FAILED"), view
    if view["status"] == "FAILED":
        assert view["error"]["reason"] == "CONTRACT_VIOLATION", view
    gateway.assert_well()
