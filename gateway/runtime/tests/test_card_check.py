"""Cards that may be admitted, cards that may not, and the digest that both bindings agree on."""

import msgspec
import pytest

from acp_spec.codec.json import decode_response
from acp_spec.codec.proto import from_proto, to_proto
from acp_spec.model.card import Action, Card, Example, Limits
from acp_spec.model.enums import Idempotency, Kind, Role
from acp_spec.model.payload import payload
from gateway.runtime.card_check import card_digest, card_problems, negotiated_version

GOOD = Card(
    name="ledger-1.x_y",
    version="1.2.3-rc.1",
    roles=(Role.EXECUTOR, Role.OBSERVER),
    actions=(
        Action(
            name="getBalance",
            input_schema=payload(
                b'{"type":"object","required":["account"],'
                b'"properties":{"account":{"type":"string","pattern":"^[0-9]{8}$"}}}'
            ),
            output_schema=payload(b'{"type":"object"}'),
            idempotency=Idempotency.BY_KEY,
            examples=(
                Example(
                    arguments=payload(b'{"account":"12345678"}'), output=payload(b"{}"), safe=True
                ),
            ),
        ),
    ),
    limits=Limits(max_request_bytes=65_536, max_concurrency=4, max_rate_per_s=10.0),
)


def action(**changes: object) -> Card:
    changed = msgspec.structs.replace(GOOD.actions[0], **changes)
    return msgspec.structs.replace(GOOD, actions=(changed,))


def whole(**changes: object) -> Card:
    return msgspec.structs.replace(GOOD, **changes)


def test_a_good_card_has_no_problems() -> None:
    assert card_problems(GOOD) == ()
    assert card_problems(Card(name="p", version="0.1.0", roles=(Role.PLANNER,))) == ()


@pytest.mark.parametrize(
    ("card", "says"),
    [
        (whole(name="Ledger"), "name:"),
        (whole(name="a" * 65), "name:"),
        (whole(name="../x"), "name:"),
        (whole(version="1.2"), "version:"),
        (whole(acp_versions=("1.0", "one")), "acp_versions:"),
        (whole(docs_url="javascript:alert(1)"), "docs_url:"),
        (whole(roles=()), "roles:"),
        (whole(roles=(Role.EXECUTOR, Role.EXECUTOR)), "twice"),
        (whole(roles=(Role.OBSERVER,)), "EXECUTOR must be among"),
        (whole(actions=()), "an EXECUTOR needs at least one"),
        (whole(kind=Kind.LLM, roles=(Role.PLANNER,), actions=()), "kind:"),
        (whole(actions=GOOD.actions * 2), "actions[1].name"),
        (whole(limits=Limits(max_request_bytes=10)), "max_request_bytes"),
        (whole(limits=Limits(max_rate_per_s=-1.0)), "max_rate_per_s"),
        (action(name="a b"), "actions[0].name"),
        (action(idempotency_ttl_ms=0), "idempotency_ttl_ms"),
        (action(timeout_ms=10**12), "timeout_ms"),
        (action(input_schema=payload(b'{"type":"strin"}')), "actions[0].input_schema"),
        (action(input_schema=payload(b'{"pattern":"(?=a)b"}')), "no lookaround"),
        (action(input_schema=payload(b'{"pattern":"(a{999}){999}"}')), "not too large"),
        (action(input_schema=payload(b'{"$ref":"http://127.0.0.1:1/x"}')), "Retrieval is disabled"),
        (action(input_schema=payload(b'{"$ref":"file:///etc/passwd"}')), "Retrieval is disabled"),
        (action(input_schema=payload(b'{"x":"' + b"a" * 300_000 + b'"}')), "over 262144 bytes"),
        (action(output_schema=payload(b'{"type":"array"}')), "examples[0].output does not fit"),
        (
            action(examples=(Example(arguments=payload(b'{"account":1}')),)),
            "examples[0].arguments does not fit input_schema: /account",
        ),
        (action(semantics=payload(b"1" * 400)), "canonical"),
        (whole(docs_url="http://x/" + "a" * 2_000_000), "over 1048576 bytes"),
    ],
)
def test_each_problem_is_named_by_its_place(card: Card, says: str) -> None:
    problems = card_problems(card)
    assert any(says in problem for problem in problems), problems


def test_many_problems_are_told_at_once_but_not_endlessly() -> None:
    bad = msgspec.structs.replace(GOOD.actions[0], name="a b")
    problems = card_problems(whole(name="X", actions=(bad,) * 200))
    assert len(problems) == 20
    assert problems[0].startswith("name:")


def test_the_digest_is_of_what_the_card_means_on_either_binding() -> None:
    text = msgspec.json.encode(GOOD)
    spaced = msgspec.json.format(text, indent=3).replace(
        b'"max_rate_per_s": 10.0', b'"max_rate_per_s": 1e1'
    )
    digest = card_digest(GOOD)
    assert card_digest(decode_response(Card, spaced)) == digest
    assert card_digest(from_proto(Card, to_proto(GOOD))) == digest
    unlimited = whole(limits=Limits(max_concurrency=1))
    assert card_digest(from_proto(Card, to_proto(unlimited))) == card_digest(unlimited)
    explicit = text.replace(
        b'"name":"getBalance"', b'"effect":"WRITE","timeout_ms":0,"name":"getBalance"'
    ).replace(b'"max_concurrency"', b'"new_in_1_9":{},"max_concurrency"')
    assert explicit != text
    assert card_digest(decode_response(Card, explicit)) == digest
    assert card_digest(whole(version="1.2.4")) != digest


@pytest.mark.parametrize(
    ("spoken", "agreed"), [(("1.0",), "1.0"), (("2.0", "1.7"), "1.0"), (("2.0",), "")]
)
def test_versions_are_agreed_by_their_major(spoken: tuple[str, ...], agreed: str) -> None:
    assert negotiated_version(whole(acp_versions=spoken)) == agreed
