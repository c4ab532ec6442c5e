"""Rules over what planners, observers and reflectors answer."""

from typing import cast

from conformance_tests.messages.tree import NoSuchPlace, Text, Tree, Value, at, plain
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.judges.judging import NotSeen
from conformance_tests.runner.subject import Subject


def _goals(seen: Exchange) -> list[Tree]:
    if not seen.answer.ok:
        raise NotSeen(f"the planner answered {seen.answer.said}: give a `plan` in --fixtures")
    plan = (seen.answer.tree or {}).get("plan")
    goals = plan.get("sub_goals", []) if isinstance(plan, dict) else []
    return [goal for goal in cast("list[Value]", goals) if isinstance(goal, dict)]


def _needs(goal: Tree) -> list[str]:
    return [str(one) for one in cast("list[Value]", goal.get("depends_on", []))]


def ids_are_unique(seen: Exchange, subject: Subject) -> str | None:
    ids = [str(goal.get("id")) for goal in _goals(seen)]
    twice = {one for one in ids if ids.count(one) > 1}
    return f"{sorted(twice)} stands twice" if twice else None


def depends_without_cycle(seen: Exchange, subject: Subject) -> str | None:
    waits = {str(goal.get("id")): set(_needs(goal)) for goal in _goals(seen)}
    for goal, needed in waits.items():
        if foreign := needed - set(waits):
            return f"{goal} depends on {sorted(foreign)}, which the plan does not have"
    while waits:
        free = {goal for goal, needed in waits.items() if not needed & set(waits)}
        if not free:
            return f"{sorted(waits)} wait for each other"
        waits = {goal: needed for goal, needed in waits.items() if goal not in free}
    return None


def reads_what_it_depends_on(seen: Exchange, subject: Subject) -> str | None:
    for goal in _goals(seen):
        for key in ("bindings", "when"):
            for item in cast("list[Tree]", goal.get(key, [])):
                if item.get("from") not in _needs(goal):
                    return f"{goal.get('id')} reads {item.get('from')}, not in its depends_on"
    return None


def not_more_sub_goals(seen: Exchange, subject: Subject) -> str | None:
    limits = cast("Tree", seen.request.get("limits", {}))
    most, count = cast("int", limits.get("max_sub_goals", 10)), len(_goals(seen))
    return f"{count} sub-goals, at most {most} were allowed" if count > most else None


def uses_offered_actions(seen: Exchange, subject: Subject) -> str | None:
    offered = {str(a.get("name")) for a in cast("list[Tree]", seen.request.get("actions", []))}
    foreign = {str(goal.get("action")) for goal in _goals(seen)} - offered
    return f"{sorted(foreign)} was not offered" if foreign else None


def retries_known_calls(seen: Exchange, subject: Subject) -> str | None:
    tree = seen.answer.tree or {}
    if tree.get("verdict") != "RETRY":
        raise NotSeen("no verdict was RETRY")
    known = [call.get("call_id") for call in cast("list[Tree]", seen.request.get("calls", []))]
    named = cast("list[Value]", tree.get("retry_call_ids", []))
    if not named:
        return "RETRY names no call"
    foreign = [one for one in named if one not in known]
    return f"{foreign} are no calls of the request" if foreign else None


def sources_resolve(seen: Exchange, subject: Subject) -> str | None:
    claims = cast("list[Tree]", (seen.answer.tree or {}).get("claims", []))
    if not claims:
        raise NotSeen("no answer makes a claim")
    calls = cast("list[Tree]", seen.request.get("calls", []))
    held: Tree = {"calls": {str(call.get("call_id")): call for call in calls}}
    for claim in claims:
        for pointer in cast("list[str]", claim.get("sources", [])):
            try:
                at(held, pointer)
            except NoSuchPlace:
                return f"{pointer} leads nowhere"
    return None


def memory_keeps_tokens(seen: Exchange, subject: Subject) -> str | None:
    """Items that hold what was observed in this request have its bytes."""
    sent = [o["data"] for o in cast("list[Tree]", seen.request.get("observations", []))]
    texts = [one for one in sent if isinstance(one, Text)]
    for item in _memory(seen):
        data = item.get("data")
        if not isinstance(data, Text) or any(data == text for text in texts):
            continue
        if any(plain(data) == plain(text) for text in texts):
            return f"an observed payload came back as {data.data!r}"
    return None


def _memory(seen: Exchange) -> list[Tree]:
    found = (seen.answer.tree or {}).get("memory")
    if not found:
        raise NotSeen("the observer recalled nothing")
    return cast("list[Tree]", found)


def each_memory_once(seen: Exchange, subject: Subject) -> str | None:
    """No payload was stored twice."""
    texts = [str(plain(item.get("data"))) for item in _memory(seen)]
    twice = [text for text in texts if texts.count(text) > 1]
    return f"{twice[0]} is remembered {len(twice)} times" if twice else None


def memory_is_there(seen: Exchange, subject: Subject) -> str | None:
    return None if (seen.answer.tree or {}).get("memory") else "what was just observed is missing"


def memory_within_limit(seen: Exchange, subject: Subject) -> str | None:
    recall = cast("Tree", seen.request.get("recall", {}))
    most = cast("int", recall.get("limit", 5))
    return f"{len(_memory(seen))} items, limit {most}" if len(_memory(seen)) > most else None


def no_memory_unasked(seen: Exchange, subject: Subject) -> str | None:
    return "memory without recall" if (seen.answer.tree or {}).get("memory") else None
