"""Rules over the gateway's own documents: trajectories, events, components, OpenAPI."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import cast

import jsonschema_rs
import msgspec
import rfc8785

from conformance_tests.messages.tree import Tree, Value, parse
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.judges.judging import NotSeen
from conformance_tests.runner.subject import Subject


def _tree(seen: Exchange) -> Tree:
    return seen.answer.tree or {}


def _rows(seen: Exchange, name: str = "calls") -> list[Tree]:
    return [row for row in cast("list[Value]", _tree(seen).get(name, [])) if isinstance(row, dict)]


def trajectory_fits_its_schema(seen: Exchange, subject: Subject) -> str | None:
    document = msgspec.json.decode(seen.answer.body)
    problem = next(iter(_schema("Trajectory").iter_errors(document)), None)
    return None if problem is None else f"{list(problem.instance_path)}: {problem.message}"


@cache
def _schema(name: str) -> "jsonschema_rs.Validator":
    text = (files("acp_spec") / "schema" / f"{name}.json").read_text(encoding="utf-8")
    return jsonschema_rs.validator_for(text)


def one_reused_row(seen: Exchange, subject: Subject) -> str | None:
    reused = [row for row in _rows(seen) if row.get("reused")]
    return None if len(reused) == 1 else f"{len(reused)} rows are reused"


def chances_sum_to_one(seen: Exchange, subject: Subject) -> str | None:
    for decision in _decisions(seen):
        options = cast("list[Tree]", decision.get("options", []))
        total = sum(float(cast("float", one.get("probability", 0))) for one in options)
        if abs(total - 1) > 1e-9:
            return f"the probabilities sum to {total}"
    return None


def masked_names_its_guard(seen: Exchange, subject: Subject) -> str | None:
    options = [o for d in _decisions(seen) for o in cast("list[Tree]", d.get("options", []))]
    if not any(option.get("masked_by") for option in options):
        return "a retry that is not safe is masked by nothing"
    wrong = [
        o for o in options if o.get("masked_by") and float(cast("float", o.get("probability", 0)))
    ]
    return f"{wrong[0]} is masked and possible" if wrong else None


def _decisions(seen: Exchange) -> list[Tree]:
    found = _rows(seen, "decisions")
    if not found:
        raise NotSeen("there was no recovery decision")
    return found


def unjudged_is_null(seen: Exchange, subject: Subject) -> str | None:
    rewards = _tree(seen).get("rewards")
    quality = rewards.get("quality", []) if isinstance(rewards, dict) else []
    for row in cast("list[Tree]", quality):
        if row.get("value") is not None and row.get("validity") not in (None, "VALID", "valid"):
            return f"{row.get('name')} is {row.get('value')} though {row.get('validity')}"
        if row.get("value") is None and not (row.get("validity") and row.get("reason")):
            return f"{row.get('name')} is null without validity and reason"
    return None if quality else "a session that nobody judged has no quality reward at all"


def one_outcome_per_attempt(seen: Exchange, subject: Subject) -> str | None:
    keys = [(str(row.get("call_id")), str(row.get("attempt"))) for row in _rows(seen)]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        return f"{sorted(twice)} has two rows"
    both = [row for row in _rows(seen) if "output" in row and row.get("error") is not None]
    return "a row has output and error" if both else None


def both_llm_calls(seen: Exchange, subject: Subject) -> str | None:
    ids = [cast("Tree", row.get("llm_call", {})).get("id") for row in _rows(seen, "llm_calls")]
    return None if {"first", "second"} <= set(map(str, ids)) else f"llm_calls {ids}"


def absent_side_effect_of_an_error(seen: Exchange, subject: Subject) -> str | None:
    """Absent in a row reads as the careful value."""
    row = _rows(seen)[0] if _rows(seen) else {}
    effect = row.get("effect", "WRITE")
    wanted = "NONE" if effect == "READ" else "UNKNOWN"
    stated = row.get("side_effect", "UNKNOWN")
    return None if stated == wanted else f"{effect} action: side effect {stated}"


def ids_count_from_one(seen: Exchange, subject: Subject) -> str | None:
    ids = [cast("Tree", event).get("id") for event in cast("list[Value]", _tree(seen)["events"])]
    return None if ids == list(range(1, len(ids) + 1)) and ids else f"ids {ids}"


def action_reads_as_careful(seen: Exchange, subject: Subject) -> str | None:
    card = cast("Tree", _tree(seen).get("card", {}))
    action = cast("list[Tree]", card.get("actions", [{}]))[0]
    stated = (action.get("effect", "WRITE"), action.get("idempotency", "NONE"))
    return None if stated == ("WRITE", "NONE") else f"the action reads as {stated}"


def digest_of_the_card(seen: Exchange, subject: Subject) -> str | None:
    held = msgspec.json.decode(seen.answer.body)
    digest = hashlib.sha256(rfc8785.dumps(held["card"])).hexdigest()
    stated = held.get("digest")
    return None if stated == digest else f"digest {stated}, of the card {digest}"


def openapi_as_in_the_spec(seen: Exchange, subject: Subject) -> str | None:
    text = (files("acp_spec") / "openapi" / "gateway.v1.json").read_bytes()
    same = parse(seen.answer.body) == parse(text)
    return None if same else "it is not openapi/gateway.v1.json"
