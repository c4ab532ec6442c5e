"""Components that say which span they were called under, over every way to reach one.

`python -m gateway.tests.observing.traced serve` serves two, `over_http` and `over_grpc`, and prints
where; `... attach GATEWAY` is `attached`. Both run until SIGTERM.
"""

import asyncio
import json
import signal
import sys

from acp_spec import Call, Component, Effect, Idempotency
from acp_spec.model.card import Limits


def make(name: str) -> Component:
    """A component with one action, `NAME.tell`."""
    component = Component(name, "1.0.0", limits=Limits(max_concurrency=16))

    @component.action(f"{name}.tell", effect=Effect.READ, idempotency=Idempotency.NATURAL)
    async def tell(arguments: object, call: Call) -> dict[str, str]:
        return {"traceparent": call.context.traceparent}

    return component


async def serve() -> None:
    """Both until the signal."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    by_http = await make("over_http").serve()
    by_grpc = await make("over_grpc").serve()
    where = {"http": str(by_http.http), "grpc": str(by_grpc.grpc)}
    sys.stdout.write(json.dumps(where) + "\n")
    sys.stdout.flush()
    await ended.wait()
    for server in (by_http, by_grpc):
        await server.stop(drain_s=0)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        make("attached").attach(sys.argv[2], instance_id="the one")
