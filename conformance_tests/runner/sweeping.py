"""What a run leaves behind at a gateway is taken away again, as far as the gateway lets it.

ACP v1 stores workflows and knows no way to delete them; a gateway may have one of its own, `DELETE`
of the path where a version was put. Nothing is judged here, and nothing of others is touched: a
workflow is this run's if its name carries the key of one of its cases.
"""

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from conformance_tests.messages.tree import Tree
from conformance_tests.raw.http1 import Unreachable
from conformance_tests.runner.gateway_peer import Call, GatewayPeer

_KEY: Final = re.compile(r"k[0-9a-f]{8,}")
_HAS_NO_WAY: Final = (404, 405, 501)


async def sweep(peer: GatewayPeer, keys: Collection[str], *, token: str) -> None:
    """Delete the versions that the cases with these keys stored; the active one of a name last."""
    with suppress(Unreachable):
        listed = await peer.call(Call(do="list_workflows", token=token))
        for one in sorted(_of_run(listed.tree or {}, keys), key=lambda one: bool(one["active"])):
            path = f"/v1/workflows/{one['name']}/versions/{one['version']}"
            call = Call(do="delete_workflow", method="DELETE", path=path, token=token)
            if (await peer.call(call)).status in _HAS_NO_WAY:
                return


def _of_run(page: Tree, keys: Collection[str]) -> list[Tree]:
    rows = page.get("workflows")
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [
        {"name": row.get("name"), "version": row.get("version"), "active": row.get("active", False)}
        for row in found
        if set(_KEY.findall(str(row.get("name")))) & set(keys)
    ]
