"""Many sessions of one workflow, some at once: opened, waited for, told in the order they end."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.model.enums import TERMINAL_SESSION
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.gateway_calls import WorkflowVersion
from acp_spec.model.payload import Payload
from acp_spec.model.session import OpenSession, SessionView
from gateway.cli.remote import Gateway
from gateway.cli.workflow_source import read_source, version_in

# One request waits so long; then the session is looked at again, as often as it takes.
WAIT_S: Final = 30
POLL_S: Final = 0.5
# How often an overloaded gateway is asked again, and how long to leave it alone in between.
OVERLOAD_TRIES: Final = 20
OVERLOAD_WAIT_S: Final = 1.0
OUTCOME_CHARACTERS_MAX: Final = 100
_FILE_ENDINGS: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What every session of a run has in common."""

    gateway: Gateway
    workflow: str
    labels: dict[str, str]
    deadline_ms: int = 0

    def run(self, inputs: Sequence[Payload], *, concurrency: int) -> Iterator[SessionView]:
        """Run a session per input; each view as it ends. The first failure to open stops it."""
        with ThreadPoolExecutor(concurrency, thread_name_prefix="acp-run") as pool:
            running = [pool.submit(self.one, given) for given in inputs]
            try:
                for done in as_completed(running):
                    yield done.result()
            finally:
                for one in running:
                    one.cancel()

    def one(self, given: Payload) -> SessionView:
        """One session, opened and waited for."""
        request = OpenSession(
            workflow=self.workflow,
            input=given,
            labels=self.labels,
            deadline_ms=self.deadline_ms,
        )
        view = self._open(request)
        while view.status not in TERMINAL_SESSION:
            time.sleep(POLL_S)
            view = self.gateway.ask(SessionView, "get_session", view.session_id)
        return view

    def _open(self, request: OpenSession) -> SessionView:
        """The session once it is open, ended if it did within the wait."""
        for _ in range(OVERLOAD_TRIES):
            try:
                return self.gateway.open(request, wait_s=WAIT_S)
            except AcpFailure as failure:
                if failure.error.reason != Reason.OVERLOADED.value:
                    raise
            time.sleep(OVERLOAD_WAIT_S)
        return self.gateway.open(request, wait_s=WAIT_S)


def stored_workflow(reference: str, gateway: Gateway) -> str:
    """`name@version` of a file, stored if it is new; any other reference as it is."""
    if not reference.endswith(_FILE_ENDINGS):
        return reference
    file = Path(reference)
    source = read_source(file)
    name, version = version_in(source, file)
    gateway.tell(WorkflowVersion, "put_workflow", name, version, body=source)
    return f"{name}@{version}"


def labels_of(pairs: Sequence[str]) -> dict[str, str]:
    """`name=value` pairs as labels."""
    labels = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise AcpFailure(error(Reason.INVALID_REQUEST, f"--label {pair!r}: write name=value"))
        labels[name] = value
    return labels


def summary(views: Sequence[SessionView]) -> str:
    """How many ended how, and where to look at one that did not succeed."""
    counts = Counter(view.status.value for view in views)
    text = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    failed = next((view for view in views if view.status.value != "SUCCEEDED"), None)
    look = failed or (views[0] if views else None)
    if look is None:
        return "there was no input"
    return f"{text}; see `acp sessions trace {look.session_id}`"


def outcome_of(view: SessionView) -> str:
    """What came out, in one line: the output's text, or the error."""
    if view.error is not None:
        return f"{view.error.reason}: {view.error.message}"
    text = bytes(view.output).decode()
    return text if len(text) <= OUTCOME_CHARACTERS_MAX else text[:OUTCOME_CHARACTERS_MAX] + "..."
