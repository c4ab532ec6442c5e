"""Which request is meant, in the words of a gateway's API; and how an ear hears something else."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from acp_spec.model.ids import body_digest
from conformance_tests.broken.http_layer import Request
from conformance_tests.broken.rules import When
from conformance_tests.messages.tree import Text, Tree, Value
from conformance_tests.stage.actors import Ear, Heard

SESSIONS = "/v1/sessions"


def opens(request: Request) -> bool:
    return request.method == "POST" and request.path == SESSIONS


def opens_with(**fields: object) -> When:
    """Opens a session with these fields in its body."""
    return lambda request: (
        opens(request) and all(request.tree.get(k) == v for k, v in fields.items())
    )


def reads(request: Request) -> bool:
    """One session is read."""
    return (
        request.method == "GET"
        and request.path.startswith(f"{SESSIONS}/")
        and request.path.count("/") == 3
    )


def below(last: str) -> When:
    """`/v1/sessions/{id}/<last>`"""
    return lambda request: request.path.startswith(SESSIONS) and request.path.endswith(f"/{last}")


trajectory = below("trajectory")
events = below("events")


def at(method: str, path: str) -> When:
    return lambda request: request.method == method and request.path == path


def under(method: str, prefix: str) -> When:
    return lambda request: request.method == method and request.path.startswith(prefix)


def component(request: Request) -> bool:
    """One registration is read."""
    return request.method == "GET" and request.path.startswith("/v1/components/")


registers = at("POST", "/v1/components")


def holds(when: When, part: bytes) -> When:
    """That request, with these bytes in its body."""
    return lambda request: when(request) and part in request.body


def ear(do: str, change: Callable[[Heard], Heard]) -> Callable[[], Ear]:
    """Requests of one kind are taken down otherwise."""

    def hear(heard: Heard) -> Heard:
        return change(heard) if heard.do == do else heard

    return lambda: hear


def without_header(name: str) -> Callable[[Heard], Heard]:
    return lambda heard: replace(
        heard, headers={k: v for k, v in heard.headers.items() if k != name}
    )


def with_header(name: str, value: str) -> Callable[[Heard], Heard]:
    return lambda heard: replace(heard, headers={**heard.headers, name: value})


def in_context(**fields: Value) -> Callable[[Heard], Heard]:
    """Other fields in the context; None takes one away."""

    def change(heard: Heard) -> Heard:
        context = {**cast("Tree", heard.tree.get("context", {})), **fields}
        kept = {k: v for k, v in context.items() if v is not None}
        tree: Tree = {**heard.tree, "context": cast("Value", kept)}
        return replace(heard, tree=tree)

    return change


def context_of(heard: Heard) -> Tree:
    return cast("Tree", heard.tree.get("context", {}))


def in_arguments(old: bytes, new: bytes) -> Callable[[Heard], Heard]:
    """Other bytes in the arguments, with a digest that fits them."""

    def change(heard: Heard) -> Heard:
        arguments = heard.tree.get("arguments")
        if not isinstance(arguments, Text) or old not in arguments.data:
            return heard
        data = arguments.data.replace(old, new)
        digest = body_digest(str(heard.tree.get("action")), data)
        changed = replace(heard, tree={**heard.tree, "arguments": Text(data)})
        return in_context(body_digest=digest)(changed)

    return change


def second_attempt(change: Callable[[Heard], Heard]) -> Callable[[Heard], Heard]:
    """Only attempts after the first."""

    def changed(heard: Heard) -> Heard:
        attempt = context_of(heard).get("attempt")
        return change(heard) if isinstance(attempt, int) and attempt > 1 else heard

    return changed
