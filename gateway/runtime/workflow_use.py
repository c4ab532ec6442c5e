"""Whether a version of a workflow is in use: by an open session, or by a rollout that is not over.

Sessions are read from the list index. One that opens while this is asked may be missed: it goes on
all the same, because the bytes of a deleted version stay.
"""

from gateway.governance.rollout import OVER
from gateway.governance.rollout_spec import Kind
from gateway.runtime.restart import open_rows
from gateway.runtime.rollouts import Rollouts
from gateway.stores.ports import Store


class WorkflowUse:
    """Asked before a version is deleted."""

    def __init__(self, store: Store, rollouts: Rollouts) -> None:
        self._store = store
        self._rollouts = rollouts

    def why(self, name: str, version: str) -> str:
        """Who uses it, in words; empty: nobody."""
        for one in self._rollouts.list().rollouts:
            subject = one.subject
            concerns = (subject.kind, subject.name) == (Kind.WORKFLOW, name)
            moves = version in (subject.baseline, subject.candidate) and one.status not in OVER
            if concerns and moves:
                return f"rollout {one.rollout_id} moves it"
        reference = f"{name}@{version}"
        rows = (row for twins in (False, True) for row in open_rows(self._store, twins=twins))
        count = sum(workflow == reference for _, workflow in rows)
        return f"open sessions run it ({count})" if count else ""
