"""The component's call-back: tell the caller that a long operation ended (SPEC section 2,
`callback`).

One POST with the token as bearer; no redirects and no proxies of the environment, because the
token must reach only the address that the caller named. Repeating is harmless: the same body again
is a 200.
"""

import httpx

from acp_spec.bindings import fields
from acp_spec.codec import json
from acp_spec.model.context import Callback
from acp_spec.model.session import CompleteOperation
from acp_spec.sdk.operations import CallBackFailed

CALL_BACK_TIMEOUT_S = 10.0


async def post_call_back(to: Callback, result: CompleteOperation) -> None:
    """Send one result; raises CallBackFailed when it was not taken (the caller tries again)."""
    headers = {
        fields.AUTHORIZATION: f"Bearer {to.token}",
        fields.CONTENT_TYPE: fields.JSON,
    }
    try:
        await _post(to.url, json.encode(result), headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as failed:
        raise CallBackFailed(f"{type(failed).__name__}: {failed}") from failed


async def _post(url: str, body: bytes, *, headers: dict[str, str]) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=CALL_BACK_TIMEOUT_S) as client:
        answer = await client.post(url, content=body, headers=headers)
        answer.raise_for_status()
