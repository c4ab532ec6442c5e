"""One planned case against one component: what each step sends, over one binding."""

import asyncio
from typing import Final, cast

from conformance_tests.messages.tree import Tree
from conformance_tests.raw.http1 import Unreachable
from conformance_tests.runner import requests
from conformance_tests.runner.answers import Answer, Exchange
from conformance_tests.runner.expansion import Planned
from conformance_tests.runner.library import Step
from conformance_tests.runner.peers import GRACE_S, Ask, Peer, body_of
from conformance_tests.runner.scope import Scope
from conformance_tests.runner.subject import Subject
from conformance_tests.runner.walking import Walk

POLL_MS: Final = 20
POLLS_MAX: Final = 500


class Scenario(Walk):
    """Runs the steps of one planned case against one binding of a component."""

    def __init__(self, planned: Planned, peer: Peer, *, subject: Subject, seed: int) -> None:
        super().__init__(planned, subject=subject, seed=seed)
        self._peer = peer

    async def exchange(self, step: Step) -> Exchange:
        do, tree, ask = self._ask(step)
        if not step.wrong and ask.body is None:
            requests.check_own(do, tree)
        answer = await (self._poll(ask) if step.do == "poll" else self._peer.ask(ask))
        return Exchange(
            case=self.planned.id,
            request=tree,
            answer=answer,
            wrong=step.wrong,
            accepts_stream=ask.stream,
            secrets=_secrets(tree, ask),
        )

    def _ask(self, step: Step) -> tuple[str, Tree, Ask]:
        options = step.options
        do = str(self.scope.fill(step.do))
        do = "get_operation" if do == "poll" else do
        own = cast("Tree", self.scope.fill(options.get(self._peer.binding, {})))
        if do == "raw":
            return do, {}, _raw(own)
        if do == "wire":
            return do, {}, Ask(do=do, how=_wire(options, self.scope))
        if do == "attach":
            return do, {}, Ask(do=do, how=own)
        tree = requests.build(do, options, scope=self.scope, subject=self.subject)
        stated = cast("dict[str, str | None]", self.scope.fill(options.get("headers", {})))
        to = self.scope.fill(options.get("to", ""))
        body = body_of(self.scope.fill(options.get("body", own.get("body"))))
        if "pad" in options:
            most = self.subject.max_request_bytes + cast("int", options["pad"])
            body = requests.padded(do, tree, size=most, binding=self._peer.binding)
        wanted = (
            self.scope.fill(example.get("output"))
            if (example := _example(options, self.scope))
            else None
        )
        ask = Ask(
            do=do,
            tree=tree,
            headers={**stated, **cast("dict[str, str | None]", own.get("headers", {}))},
            call_id=str(to),
            body=body,
            stream=bool(options.get("stream", False)),
            timeout_s=_patience_s(tree),
            how=own if self._peer.binding == "attach" else {},
        )
        return do, tree if wanted is None else {**tree, "@output": wanted}, ask

    async def _poll(self, ask: Ask) -> Answer:
        """Ask again until the operation has ended or an error comes."""
        for _ in range(POLLS_MAX):
            answer = await self._peer.ask(ask)
            if not answer.ok or (answer.tree or {}).get("status") != "RUNNING":
                return answer
            await asyncio.sleep(POLL_MS / 1000)
        raise Unreachable(f"the operation still runs after {POLLS_MAX} polls")


def _example(options: Tree, scope: Scope) -> Tree:
    stated = scope.fill(options.get("example", {}))
    return stated if isinstance(stated, dict) else {}


def _wire(options: Tree, scope: Scope) -> Tree:
    stated = {name: value for name, value in options.items() if name in {"frames", "wait_s"}}
    return cast("Tree", scope.fill(stated))


def _raw(own: Tree) -> Ask:
    return Ask(
        do="raw",
        method=str(own.get("method", "GET")),
        path=str(own.get("path", "/")),
        headers=cast("dict[str, str | None]", own.get("headers", {})),
        body=body_of(own.get("body")),
    )


def _patience_s(tree: Tree) -> float:
    context = tree.get("context")
    timeout_ms = context.get("timeout_ms") if isinstance(context, dict) else None
    return GRACE_S + (timeout_ms / 1000 if isinstance(timeout_ms, int) else 0)


def _secrets(tree: Tree, ask: Ask) -> tuple[str, ...]:
    context = tree.get("context")
    callback = context.get("callback") if isinstance(context, dict) else None
    token = callback.get("token") if isinstance(callback, dict) else None
    header = ask.headers.get("authorization") or ""
    return tuple(s for s in (str(token or ""), header.removeprefix("Bearer ")) if s)
