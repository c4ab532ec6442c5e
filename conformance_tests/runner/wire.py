"""`do: wire`: bytes on an HTTP/2 connection of their own, and what became of it.

`frames` is a list of items: `begin` (preface and settings), `request` (a right header block, with
`headers` other than those or without), `message` (`body flag stated`), `frame` (`kind flags stream
length payload zeros`), `raw` bytes, and `times: n, of: [...]` on a stream each.
"""

from typing import Final, cast

from conformance_tests.messages.tree import Tree, Value
from conformance_tests.raw.http2 import PATIENCE_S, bytes_of, exchange
from conformance_tests.runner.answers import Answer

HEALTH: Final = "/grpc.health.v1.Health/Check"
"""What every gRPC server has, and nobody needs a role for."""


async def send_wire(url: str, how: Tree, *, token: str) -> Answer:
    """Raises Unreachable."""
    address = url.rpartition("://")[2]
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": HEALTH,
        ":authority": address,
        "content-type": "application/grpc",
        "te": "trailers",
        "acp-version": "1.0",
    }
    if token:
        headers["authorization"] = f"Bearer {token}"
    data = bytes_of(cast("list[Value]", how["frames"]), headers=headers)
    wire = await exchange(address, data, within_s=float(str(how.get("wait_s", PATIENCE_S))))
    tree: Tree = {"outcome": wire.outcome, "goaway": wire.goaway or 0, "closed": wire.closed}
    return Answer(binding="grpc", do="wire", message="", ok=True, tree=tree)
