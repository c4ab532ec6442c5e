"""Sessions of the hotline, some at once: opened, waited for, their trajectories read."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import TERMINAL_SESSION
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import Opened, OpenSession, SessionView
from acp_spec.model.trajectory import Trajectory
from acp_spec.sdk import gateway_questions as ask
from acp_spec.sdk.gateway_client import GatewayClient
from acp_spec.sdk.values import write
from reference_components.hotline.questions import Question

CONCURRENCY = 8
"""Sessions at once: enough to keep five languages on two cores busy, little enough to stay fair."""
WAIT_S = 30
"""As long as the workflow's deadline: nearly every session is answered by its opening."""
GIVE_UP_S = 60.0
POLL_S = 0.5
OVERLOAD_TRIES = 20
OVERLOAD_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Ended:
    """A session that is over, with its whole record."""

    question: Question
    view: SessionView
    trajectory: Trajectory


def all_calls(
    client: GatewayClient, workflow: str, *, asked: Sequence[Question]
) -> Iterator[Ended]:
    """Every question's session, as they end. The first failure of the gateway ends the run."""
    pool = ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="hotline")
    try:
        running = [pool.submit(one_call, client, workflow, question=one) for one in asked]
        for done in as_completed(running):
            yield done.result()
    finally:
        # Not waited for: after a Ctrl-C the gateway stops, which ends what is still asked.
        pool.shutdown(wait=False, cancel_futures=True)


def one_call(client: GatewayClient, workflow: str, *, question: Question) -> Ended:
    """One session from its opening to its record."""
    request = OpenSession(
        workflow=workflow,
        input=write({"query": question.text, "customer": question.customer}),
        labels={"customer": question.customer},
    )
    view = _ended(client, _open(client, request))
    text = client.ask(ask.get_trajectory(view.session_id))
    return Ended(question, view, msgspec.json.decode(text, type=Trajectory))


def _ended(client: GatewayClient, view: Opened | SessionView) -> SessionView:
    """The session once it is over; AcpFailure when it is not, long after its deadline."""
    give_up_s = time.monotonic() + GIVE_UP_S
    while isinstance(view, Opened) or view.status not in TERMINAL_SESSION:
        if time.monotonic() > give_up_s:
            message = f"session {view.session_id} does not end; see the gateway's log"
            raise AcpFailure(error(Reason.TIMEOUT, message))
        time.sleep(POLL_S)
        view = client.ask(ask.get_session(view.session_id))
    return view


def _open(client: GatewayClient, request: OpenSession) -> Opened | SessionView:
    for _ in range(OVERLOAD_TRIES):
        try:
            return client.ask(ask.open_session(request, wait_s=WAIT_S))
        except AcpFailure as failure:
            if failure.error.reason != Reason.OVERLOADED.value:
                raise
        time.sleep(OVERLOAD_PAUSE_S)
    return client.ask(ask.open_session(request, wait_s=WAIT_S))
