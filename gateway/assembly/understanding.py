"""Semantics, wired: what values mean, and what is forgotten together with a session."""

from gateway.board.audit import AuditLog
from gateway.runtime.erasing import Forget
from gateway.runtime.meaning import Meaning
from gateway.runtime.ngrams import NgramNearest
from gateway.runtime.outbox import Outbox
from gateway.runtime.semantics_review import SemanticsReview
from gateway.runtime.unknown_values import UnknownValues
from gateway.runtime.workflows import Workflows


def meaning() -> Meaning:
    """The mapper of this gateway, with the default `nearest`."""
    return Meaning(NgramNearest())


def review(unknown: UnknownValues, workflows: Workflows, *, audit: AuditLog) -> SemanticsReview:
    """What operators do about values that nobody understood."""
    return SemanticsReview(
        unknown=unknown, workflows=workflows, audit=audit, nearest=NgramNearest()
    )


def forget_everywhere(outbox: Outbox, unknown: UnknownValues) -> Forget:
    """Everything outside the journal that may hold a piece of a session."""

    async def forget(session_id: str) -> int:
        unknown.forget_session(session_id)
        return await outbox.erase(session_id)

    return forget
