"""One planned case against a gateway: its stage of components, its workflow, its steps.

Both sides are looked at: what a client is answered, and what the case's components were sent
(`heard`). Every case has names of its own, so that cases run side by side in one gateway.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Final, cast

from acp_spec.bindings.routes import GATEWAY
from conformance_tests.messages.tree import Text, Tree, Value, as_text, to_proto
from conformance_tests.raw.http1 import Unreachable
from conformance_tests.runner.answers import Answer, Exchange
from conformance_tests.runner.checks import place
from conformance_tests.runner.expansion import Planned
from conformance_tests.runner.fixtures import Fixtures
from conformance_tests.runner.gateway_peer import Call, GatewayPeer
from conformance_tests.runner.gateway_subject import GatewaySubject
from conformance_tests.runner.library import Step
from conformance_tests.runner.peers import body_of
from conformance_tests.runner.requests import merged
from conformance_tests.runner.results import Finding
from conformance_tests.runner.subject import NotDeclared
from conformance_tests.runner.walking import CannotGoOn, Walk
from conformance_tests.runner.wire import send_wire
from conformance_tests.stage.actors import Actor, Ear, as_it_came
from conformance_tests.stage.attach_link import NOTHING, Between
from conformance_tests.stage.attach_stage import CREDITS, AttachedActor
from conformance_tests.stage.casting import cast_actors, workflow_text
from conformance_tests.stage.grpc_stage import serve_grpc
from conformance_tests.stage.http_stage import HttpStage

WAIT_S: Final = 20
LEASE_S: Final = 600
HEARD_WITHIN_S: Final = 10.0
UNTIL_S: Final = 20.0
POLL_S: Final = 0.03
SECRET_PART_LENGTH: Final = 24
_LATER: Final = ("url", "localhost", "id")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What all cases of a run share."""

    peer: GatewayPeer
    stage: HttpStage
    stage_url: str
    fixtures: Fixtures = field(default_factory=Fixtures)
    restart: Callable[[], Awaitable[None]] | None = None
    ear: Ear = as_it_came
    attach_url: str = ""
    wire_url: str = ""
    between: Between = NOTHING
    keys: list[str] = field(default_factory=list)
    """Of the cases that have begun: every name that they give carries theirs."""


class GatewayScenario(Walk):
    """Runs the steps of one planned case."""

    def __init__(
        self, planned: Planned, world: World, *, subject: GatewaySubject, seed: int
    ) -> None:
        super().__init__(planned, subject=subject.as_component(), seed=seed)
        self._world = world
        # Not drawn from the seed alone: a gateway remembers the names of an earlier run.
        self.key = f"k{random.Random(f'{seed}/{planned.id}').getrandbits(20):05x}{time.time_ns():x}"
        world.keys.append(self.key)
        self.actors: dict[str, Actor] = {}
        self._attached: dict[str, AttachedActor] = {}
        self._open = AsyncExitStack()
        self._registered: list[str] = []

    async def close(self) -> None:
        """Take the actors off the stage and out of the gateway."""
        for id_ in self._registered:
            call = Call(do="remove_component", params={"component_id": id_}, token=self._token())
            with suppress(Unreachable):
                await self._world.peer.call(call)
        for name, actor in self.actors.items():
            actor.release()
            self._world.stage.actors.pop(f"{name}-{self.key}", None)
        await self._open.aclose()

    # ---- the stage --------------------------------------------------------------------------

    async def prepare(self) -> None:
        await super().prepare()
        self.scope.keep("key", self.key)
        self.scope.keep("workflow", f"w-{self.key}")
        admin = self._world.fixtures.tokens.admin
        self.scope.keep("admin", admin)
        # No gateway's form of a token is ours to know, and what is cut at a letter that a secret
        # may hold can be two letters long: the end of it is never in an answer by chance.
        self.scope.keep("secret_part", admin[-SECRET_PART_LENGTH:])
        credential = self._world.fixtures.credential
        self.scope.keep("credential", credential.name)
        self.scope.keep("credential_secret", credential.secret)
        stage = self._filled_stage()
        self.actors = cast_actors(stage, self.key)
        for name, actor in self.actors.items():
            actor.ear = self._world.ear
            self._world.stage.actors[f"{name}-{self.key}"] = actor
            about = cast("dict[str, Tree]", stage.get("actors", {})).get(name, {})
            await self._register(name, actor, about=about)
        text = workflow_text(stage, self.key)
        self.scope.keep("workflow_text", text)
        if text and stage.get("store", True):
            params = {"name": f"w-{self.key}", "version": "1.0.0"}
            call = Call(do="put_workflow", params=params, body=text.encode(), token=self._token())
            self._must(await self._world.peer.call(call), "workflow")

    def _filled_stage(self) -> Tree:
        """Names filled in, but for what is known only once an actor stands (`register`)."""
        later = {f"{kind}_{name}": f"${kind}_{name}" for kind in _LATER for name in "cdm"}
        for name, text in later.items():
            self.scope.keep(name, text)
        return cast("Tree", self.scope.fill(self.planned.case.stage))

    async def _register(self, name: str, actor: Actor, *, about: Tree) -> None:
        transport = str(about.get("transport", "HTTP"))
        url = f"{self._world.stage_url}/{name}-{self.key}"
        if transport == "ATTACH":
            await self._attach_actor(name, actor, about=about)
            return
        if transport == "GRPC":
            url = await self._open.enter_async_context(serve_grpc(actor))
        self.scope.keep(f"url_{name}", url)
        self.scope.keep(f"localhost_{name}", url.replace("127.0.0.1", "localhost"))
        self.scope.keep(f"id_{name}", "")
        if about.get("register") is False:
            return
        tree: Tree = {"url": url, "transport": transport, "lease_seconds": LEASE_S}
        tree |= cast("Tree", self.scope.fill(about.get("register", {})))
        call = Call(do="register_component", tree=tree, token=self._token())
        answer = await self._world.peer.call(call)
        if not about.get("optional"):
            self._must(answer, f"register_{name}")
        id_ = str((answer.tree or {}).get("component_id", ""))
        self.scope.keep(f"id_{name}", id_)
        self._registered.append(id_)

    async def _attach_actor(self, name: str, actor: Actor, *, about: Tree) -> None:
        """It dials the gateway and is registered by its hello."""
        world = self._world
        attached = AttachedActor(
            actor, world.attach_url, token=self._token(), between=world.between
        )
        self._attached[name] = attached
        self._open.push_async_callback(attached.close)
        attached.credits = int(str(about.get("credits", CREDITS)))
        await attached.hello({})
        if not attached.link.is_open:
            raise CannotGoOn(Finding(check="stage.attach", message=str(attached.link.error)))
        id_ = str((attached.link.welcome or {}).get("component_id", ""))
        self.scope.keep(f"id_{name}", id_)
        self._registered.append(id_)

    async def _order(self, options: Tree) -> Answer:
        """What an attached actor is told to do on its streams."""
        attached = self._attached[str(options.get("by", "c"))]
        how = cast("Tree", options["attach"])
        token = self._token(str(how["token"])) if "token" in how else ""
        tree = await attached.obey({**how, "token": token})
        return Answer(binding="attach", do="attach", message="", ok=True, tree=tree)

    def _must(self, answer: Answer, what: str) -> Answer:
        """The stage must stand; what it cannot show is the check `stage.<what>`."""
        if not answer.ok:
            said = f"{answer.said} {(answer.error or {}).get('message', '')}"
            raise CannotGoOn(Finding(check=f"stage.{what}", message=said))
        return answer

    # ---- the steps --------------------------------------------------------------------------

    async def exchange(self, step: Step) -> Exchange:
        options = cast("Tree", self.scope.fill(step.options))
        if "until" in options:
            return await self._until(step, options)
        return await self._once(step, options)

    async def _until(self, step: Step, options: Tree) -> Exchange:
        """Ask again until it says what is waited for; the last answer when it never does."""
        deadline = time.monotonic() + float(cast("int", options.get("until_s", UNTIL_S)))
        wanted = cast("Tree", options["until"])
        while True:
            seen = await self._once(step, options)
            problems = [place(seen.answer.tree, path, wanted=v) for path, v in wanted.items()]
            if not any(problems) or time.monotonic() > deadline:
                return seen
            await asyncio.sleep(POLL_S)

    async def _once(self, step: Step, options: Tree) -> Exchange:
        do = str(options.get("do"))
        request: Tree = {}
        match do:
            case "heard":
                answer = await self._heard(options)
            case "restart":
                answer = await self._restart()
            case "say":
                answer = self._say(options)
            case "let_go":
                self.actors[str(options.get("by", "c"))].let_go()
                answer = Answer(binding="http", do="say", message="", ok=True, tree={})
            case "attach":
                answer = await self._order(options)
            case "wire":
                answer = await send_wire(self._world.wire_url, options, token=self._token())
            case "rpc":
                answer = await self._rpc(options)
            case _:
                call = self._call(do, options)
                request, answer = call.tree, await self._world.peer.call(call)
        return Exchange(case=self.planned.id, request=request, answer=answer, wrong=step.wrong)

    def _call(self, do: str, options: Tree) -> Call:
        headers = cast("dict[str, str | None]", options.get("headers", {}))
        tree = cast("Tree", options.get("message", {}))
        if do in {"session", "open_session"}:
            tree = self._opening(options, tree)
            wait_s = options.get("wait_s", WAIT_S if do == "session" else None)
            headers = {"prefer": f"wait={wait_s}" if wait_s else None, **headers}
            do = "open_session"
        if do == "execute_step":
            headers = {"prefer": f"wait={WAIT_S}", **headers}
        own = cast("Tree", options.get("http", {}))
        return Call(
            do=do,
            tree=tree,
            params=_params(do, options.get("to", {})),
            query={k: str(v) for k, v in cast("Tree", options.get("query", {})).items()},
            headers={**headers, **cast("dict[str, str | None]", own.get("headers", {}))},
            token=self._token(str(options.get("token", "admin"))),
            body=body_of(options.get("body", own.get("body"))),
            method=str(own.get("method", "")),
            path=str(own.get("path", "")),
        )

    def _opening(self, options: Tree, tree: Tree) -> Tree:
        base: Tree = {"workflow": self.scope.get("workflow")}
        if "input" in options:
            base["input"] = as_text(options["input"])
        dropped = cast("list[str]", options.get("drop", []))
        return {k: v for k, v in merged(base, tree).items() if k not in dropped}

    def _token(self, name: str = "admin") -> str:
        """The fixture of that name, or the text itself."""
        tokens = self._world.fixtures.tokens
        return str(getattr(tokens, name, name)) if name != "none" else ""

    async def _heard(self, options: Tree) -> Answer:
        """What an actor was sent; waits until it was `at_least` that much."""
        actor = self.actors[str(options.get("by", "c"))]
        do = str(options.get("of", "execute"))
        least = int(cast("int", options.get("at_least", 1)))
        await actor.wait_for(do, least, within_s=HEARD_WITHIN_S)
        calls: list[Value] = [heard.as_tree() for heard in actor.of(do)]
        tree: Tree = {
            "count": len(calls),
            "calls": calls,
            "strays": sum(self.key in path for path in self._world.stage.strays),
        }
        return Answer(binding="http", do="heard", message="", ok=True, tree=tree)

    def _say(self, options: Tree) -> Answer:
        """From now on the actor answers otherwise."""
        actor = self.actors[str(options.get("by", "c"))]
        actor.replace_script(str(options.get("of", "execute")), cast("list[Tree]", options["says"]))
        return Answer(binding="http", do="say", message="", ok=True, tree={})

    async def _restart(self) -> Answer:
        if self._world.restart is None:
            raise NotDeclared("the fixtures name no `restart` command")
        await self._world.restart()
        return Answer(binding="http", do="restart", message="", ok=True, tree={})

    async def _rpc(self, options: Tree) -> Answer:
        """A gRPC method of the gateway: `path`, `message` type, tree or bytes."""
        own = cast("Tree", options["grpc"])
        token = self._token(str(options.get("token", "admin")))
        metadata = {"acp-version": "1.0", **cast("dict[str, str]", own.get("metadata", {}))}
        if token:
            metadata["authorization"] = f"Bearer {token}"
        body = body_of(own.get("body"))
        if body is None:
            body = to_proto(cast("Tree", own.get("tree", {})), str(own.get("in", "Empty")))
        return await self._world.peer.rpc(
            str(own["path"]), body, message=str(own.get("out", "")), metadata=metadata
        )


def _params(do: str, stated: Value) -> dict[str, str]:
    """Path parameters; one text stands for the only one, or for the first."""
    if isinstance(stated, dict):
        return {k: str(v) for k, v in stated.items()}
    route = GATEWAY.get(do)
    if route is None or not stated:
        return {}
    name = route.path.partition("{")[2].partition("}")[0]
    return {name: str(stated)}


def heard_exchanges(scenario: GatewayScenario) -> list[Exchange]:
    """What the case's components were sent, as watches see it."""
    found = []
    for name, actor in scenario.actors.items():
        for heard in actor.heard:
            answer = Answer(binding="http", do=f"heard.{heard.do}", message="", ok=True, tree={})
            about = {**heard.as_tree(), "@binding": heard.binding, "@body": Text(heard.body)}
            found.append(
                Exchange(
                    case=f"{scenario.planned.id} by {name}",
                    request=about,
                    answer=answer,
                    wrong=False,
                )
            )
    return found
