"""What a stream that began with a good token tells once the token is good no more: nothing."""

from dataclasses import dataclass

import grpc
import httpx
import msgspec
import pytest

from acp_spec.bindings.routes import GATEWAY
from acp_spec.codec import proto
from acp_spec.codec.error_trailer import decode_trailer
from acp_spec.model import gateway_calls as calls
from acp_spec.model.enums import Mode
from acp_spec.model.payload import payload
from acp_spec.model.session import OpenSession
from gateway.tests.access.conftest import Guarded
from gateway.tests.asking import Asker

WORKFLOW = """
workflow: waits
version: 1.0.0
steps: [{name: s, role: execute, component: nobody, action: a}]
output: input
"""
SAID = "said behind the revocation"


@dataclass(frozen=True, slots=True)
class Followed:
    """A session of one tenant, and a token of it that may follow, and will not for long."""

    asker: Asker
    guarded: Guarded
    session_id: str
    token: str
    token_id: str

    def revoke_then_finish(self) -> None:
        admin = {"authorization": f"Bearer {self.guarded.token('admin')}"}
        gone = self.asker.send("DELETE", f"/v1/tokens/{self.token_id}", headers=admin)
        assert gone.status == 204
        finish = calls.FinishSessionRequest(
            session_id=self.session_id, output=payload(f'"{SAID}"'.encode())
        )
        mine = self.guarded.token("mine")
        assert self.asker.over_http(GATEWAY["finish_session"], finish, token=mine).is_success


@pytest.fixture
def followed(guarded: Guarded, asker: Asker) -> Followed:
    mine = guarded.token("mine")
    put = calls.PutWorkflowRequest(name="waits", version="1.0.0", source=WORKFLOW)
    assert asker.over_http(GATEWAY["put_workflow"], put, token=mine).is_success
    opening = OpenSession(workflow="waits", mode=Mode.MANUAL)
    asked = calls.OpenSessionRequest(session=opening)
    opened = asker.over_http(GATEWAY["open_session"], asked, token=mine)
    headers = {
        "authorization": f"Bearer {guarded.token('admin')}",
        "content-type": "application/json",
    }
    made = asker.send("POST", "/v1/tokens", headers=headers, body=b'{"scopes": ["submit"]}')
    told = msgspec.json.decode(made.data)
    session_id = msgspec.json.decode(opened.data)["session_id"]
    return Followed(asker, guarded, session_id, told["token"], told["info"]["token_id"])


def test_an_event_stream_ends_when_its_token_is_revoked(followed: Followed) -> None:
    url = f"http://{followed.guarded.served.http}/v1/sessions/{followed.session_id}/events"
    shown = {"authorization": f"Bearer {followed.token}"}
    with httpx.stream("GET", url, headers=shown, trust_env=False, timeout=20) as answer:
        lines = answer.iter_lines()
        assert "event: Opened" in [next(lines) for _ in range(4)]
        followed.revoke_then_finish()
        rest = list(lines)
    assert not [line for line in rest if SAID in line]
    assert '"reason":"UNAUTHENTICATED"' in rest[-2]


def test_a_grpc_stream_ends_when_its_token_is_revoked(followed: Followed) -> None:
    route = GATEWAY["stream_events"]
    asked = proto.to_proto(calls.StreamEventsRequest(session_id=followed.session_id))
    shown = (("authorization", f"Bearer {followed.token}"),)
    with grpc.insecure_channel(followed.guarded.served.grpc) as channel:
        stream = channel.unary_stream(route.rpc)(asked, metadata=shown, timeout=20)
        assert b"Opened" in next(stream)
        followed.revoke_then_finish()
        with pytest.raises(grpc.RpcError) as failed:
            assert SAID.encode() not in b"".join(stream)
    trailer = dict(failed.value.trailing_metadata())["acp-error-bin"]
    number = failed.value.code().value[0]
    assert decode_trailer(number, "", trailer=trailer).error.reason == "UNAUTHENTICATED"
