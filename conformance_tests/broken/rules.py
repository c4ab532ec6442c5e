"""The words of which rules are made: when a request is meant, and what happens to it or its answer.

A rule touches one thing; whatever it is not about passes unchanged. Each call of a maker gives a
fresh rule, so that what one remembers does not reach the next run.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from conformance_tests.broken.http_layer import Forward, Json, Reply, Request, Rule

When = Callable[[Request], bool]
Change = Callable[[Json], object]
Maker = Callable[[], Rule]


def before(when: When, change: Change) -> Maker:
    """The request's body is changed before it goes on."""

    async def rule(request: Request, forward: Forward) -> Reply:
        if not when(request):
            return await forward(request)
        tree = copy.deepcopy(request.tree)
        change(tree)
        return await forward(request.with_tree(tree))

    return lambda: rule


def after(
    when: When,
    change: Change,
    *,
    ok: bool | None = None,
    sees: bytes = b"",
    status_is: int = 0,
) -> Maker:
    """The answer's body is changed; limited to successes or errors, a status, or what it holds."""

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if not when(request) or (ok is not None and reply.ok is not ok) or sees not in reply.body:
            return reply
        if status_is not in {0, reply.status}:
            return reply
        tree = reply.tree
        change(tree)
        return reply.with_tree(tree)

    return lambda: rule


def instead(when: When, reply: Reply) -> Maker:
    """Another answer, and nothing goes on."""

    async def rule(request: Request, forward: Forward) -> Reply:
        return reply if when(request) else await forward(request)

    return lambda: rule


def status(when: When, number: int, *, ok: bool = True) -> Maker:
    """Another HTTP status for the same body, of a success or of an error."""

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        meant = when(request) and reply.ok is ok
        return replace(reply, status=number) if meant else reply

    return lambda: rule


def header(when: When, name: str, *, to: str) -> Maker:
    """Another header on the answer."""

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if not when(request):
            return reply
        return replace(reply, headers={**reply.headers, name: to})

    return lambda: rule


def request_header(when: When, name: str, *, to: str | None) -> Maker:
    """Another header on the request; None takes it away."""

    async def rule(request: Request, forward: Forward) -> Reply:
        if not when(request):
            return await forward(request)
        headers = {k: v for k, v in request.headers.items() if k != name}
        if to is not None:
            headers[name] = to
        return await forward(replace(request, headers=headers))

    return lambda: rule


def _through(rule: Rule, way: Forward) -> Forward:
    async def forward(request: Request) -> Reply:
        return await rule(request, way)

    return forward


def in_turn(*makers: Maker) -> Maker:
    """Several changes of one request, the first one outermost."""

    def make() -> Rule:
        made = [maker() for maker in makers]

        async def rule(request: Request, forward: Forward) -> Reply:
            way = forward
            for one in reversed(made):
                way = _through(one, way)
            return await way(request)

        return rule

    return make


def text(when: When, old: bytes, *, to: bytes) -> Maker:
    """Bytes of the request replaced."""

    async def rule(request: Request, forward: Forward) -> Reply:
        if not when(request):
            return await forward(request)
        return await forward(replace(request, body=request.body.replace(old, to)))

    return lambda: rule


def answer_text(when: When, old: bytes, *, to: bytes) -> Maker:
    """Bytes of the answer replaced."""

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        return replace(reply, body=reply.body.replace(old, to)) if when(request) else reply

    return lambda: rule


def answered(sees: Callable[[Request, Reply], bool], reply: Reply) -> Maker:
    """Another answer in place of one that looks like this."""

    async def rule(request: Request, forward: Forward) -> Reply:
        came = await forward(request)
        return reply if sees(request, came) else came

    return lambda: rule


def plainly(rule: Rule) -> Maker:
    """A rule that remembers nothing."""
    return lambda: rule


def saying(tree: Json, *, http: int = 200) -> Reply:
    """A JSON answer."""
    return Reply(status=http).with_tree(tree)


def error(code: str, reason: str, *, http: int, side_effect: str = "NONE") -> Reply:
    """A well made error answer."""
    body = {
        "error": {
            "code": code,
            "reason": reason,
            "message": "Refused by a broken peer.",
            "side_effect": side_effect,
            "boundary": "COMPONENT",
        }
    }
    return Reply(
        status=http, headers={"content-type": "application/json"}, body=json.dumps(body).encode()
    )


INVALID = error("INVALID_ARGUMENT", "INVALID_REQUEST", http=400)


def put(path: str, value: object) -> Change:
    """Set what stands at `a/b/c`."""

    def change(tree: Json) -> None:
        *steps, last = path.split("/")
        holder: Any = tree
        for step in steps:
            holder = holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})
        holder[int(last) if isinstance(holder, list) else last] = value

    return change


def drop(path: str) -> Change:
    """Take away what stands at `a/b/c`."""

    def change(tree: Json) -> None:
        *steps, last = path.split("/")
        holder: Any = tree
        for step in steps:
            holder = holder[int(step)] if isinstance(holder, list) else holder.get(step, {})
        holder.pop(last, None)

    return change


def rename(path: str, name: str) -> Change:
    """Write one field under another name."""

    def change(tree: Json) -> None:
        *steps, last = path.split("/")
        holder: Any = tree
        for step in steps:
            holder = holder.get(step, {})
        if last in holder:
            holder[name] = holder.pop(last)

    return change


def both(*changes: Change) -> Change:
    def change(tree: Json) -> None:
        for one in changes:
            one(tree)

    return change


# ---- when ---------------------------------------------------------------------------------------


def do(name: str) -> When:
    return lambda request: request.do == name and "/calls/" not in request.path


def action(name: str, **arguments: object) -> When:
    """Execute of this action, with these among its arguments."""
    return lambda request: (
        request.do == "execute"
        and request.action == name
        and all(request.arguments.get(k) == v for k, v in arguments.items())
    )


def all_of(*conditions: When) -> When:
    return lambda request: all(condition(request) for condition in conditions)


def context_is(name: str, value: object) -> When:
    return lambda request: request.context.get(name) == value
