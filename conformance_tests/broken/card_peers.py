"""Peers that break one rule of SPEC section 4: the card and what the test actions do."""

from functools import partial
from itertools import count

import msgspec

from acp_spec.model.card import Card
from acp_spec.model.payload import Payload
from conformance_tests.broken.base import make
from conformance_tests.broken.http_layer import Forward, Reply, Request, Rule
from conformance_tests.broken.peer import BrokenPeer
from conformance_tests.broken.rules import action, after, before, put

FAR = Payload(b'{"$ref":"http://schemas.invalid/thing.json"}')


def _twice(card: Card) -> Card:
    return msgspec.structs.replace(card, actions=(*card.actions, card.actions[-1]))


def _far_schema(card: Card) -> Card:
    changed = tuple(
        msgspec.structs.replace(one, output_schema=FAR) if one.name == "acp.test.fail" else one
        for one in card.actions
    )
    return msgspec.structs.replace(card, actions=changed)


def _changing() -> Rule:
    """Another docs_url at each look, but for the first."""
    number = count()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if not reply.ok or request.do != "component" or not next(number):
            return reply
        return reply.with_tree({**reply.tree, "docs_url": "http://changed/"})

    return rule


def _shout(tree: dict[str, object]) -> None:
    if isinstance(tree.get("output"), str):
        tree["output"] = str(tree["output"]).upper()


def _early_end() -> Rule:
    """Operations of 2000 ms have succeeded as soon as they are accepted."""
    early: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if action("acp.test.operation", ms=2000)(request):
            early.add(request.context["call_id"])
        if request.do in early and reply.tree.get("status") == "RUNNING":
            return reply.with_tree({"status": "SUCCEEDED", "output": {}})
        return reply

    return rule


PEERS = (
    BrokenPeer(
        requirement="CRD-001",
        does="has no name",
        because=r"card_names_itself: the card has no name",
        component=partial(make, ""),
    ),
    BrokenPeer(
        requirement="CRD-002",
        does="names an action twice",
        because=r"card_actions_are_named: \['acp.test.count'\] stands twice",
        card=_twice,
    ),
    BrokenPeer(
        requirement="CRD-003",
        does="speaks no version",
        because=r"card_states_versions: acp_versions is empty",
        http=after(lambda r: r.do == "component", put("acp_versions", []), ok=True),
    ),
    BrokenPeer(
        requirement="CRD-004",
        does="has a schema that must be fetched",
        because=r"card_schemas_compile: output_schema of acp.test.fail",
        card=_far_schema,
    ),
    BrokenPeer(
        requirement="CRD-005",
        does="changes its card under one version",
        because=r"card_is_the_first: .*docs_url changed while the version stayed 1.2.3",
        http=_changing,
    ),
    BrokenPeer(
        requirement="CRD-009",
        does="answers an example with another output",
        because=r"as_the_example_says: expected",
        http=after(action("correct.greet"), put("output", {"greeting": "Go away."}), ok=True),
    ),
    BrokenPeer(
        requirement="CRD-011",
        does="shouts back",
        because=r"at: output: expected",
        http=after(
            lambda r: action("acp.test.echo")(r) and isinstance(r.tree.get("arguments"), str),
            _shout,
            ok=True,
        ),
    ),
    BrokenPeer(
        requirement="CRD-012",
        does="does not sleep",
        because=r"not_before_ms: answered after",
        http=before(action("acp.test.sleep", ms=120), put("arguments/ms", 0)),
    ),
    BrokenPeer(
        requirement="CRD-013",
        does="fails with other details",
        because=r"at: error/details",
        http=after(action("acp.test.fail", reason="OUT_OF_PAPER"), put("error/details", {})),
    ),
    BrokenPeer(
        requirement="CRD-014",
        does="answers another key",
        because=r"at: output: expected .* got .*'other'",
        http=after(action("acp.test.count"), put("output/key", "other"), ok=True),
    ),
    BrokenPeer(
        requirement="CRD-015",
        does="says at once that the work is done",
        because=r"at: status: expected 'RUNNING', got 'SUCCEEDED'",
        http=_early_end,
    ),
)
