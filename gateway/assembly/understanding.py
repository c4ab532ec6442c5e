"""Semantics, wired: what values mean, and what is forgotten together with a session."""

from gateway.board.audit import AuditLog
from gateway.config.semantics import NearestKind, SemanticsSettings
from gateway.runtime.archive import Archive
from gateway.runtime.embedding import EmbeddingNearest, load_encoder
from gateway.runtime.erasing import Forget
from gateway.runtime.meaning import NO_GUESSES, Meaning
from gateway.runtime.ngrams import NgramNearest
from gateway.runtime.outbox import Outbox
from gateway.runtime.review_queue import ReviewQueue
from gateway.runtime.semantics_review import SemanticsReview
from gateway.runtime.unknown_values import UnknownValues
from gateway.runtime.workflows import Workflows


def meaning_of(settings: SemanticsSettings) -> Meaning:
    """The mapper of this gateway. Raises ModelUnusable when its model cannot be loaded."""
    match settings.nearest:
        case NearestKind.OFF:
            return NO_GUESSES
        case NearestKind.NGRAMS:
            return Meaning(NgramNearest())
        case NearestKind.EMBEDDING:
            assert settings.model_dir is not None, "the settings are checked"
            return Meaning(EmbeddingNearest(load_encoder(settings.model_dir), NgramNearest()))


def review(
    unknown: UnknownValues, workflows: Workflows, *, audit: AuditLog, meaning: Meaning
) -> SemanticsReview:
    """What operators do about values that nobody understood."""
    return SemanticsReview(
        unknown=unknown, workflows=workflows, audit=audit, nearest=meaning.nearest
    )


def forget_everywhere(
    outbox: Outbox, unknown: UnknownValues, *, reviews: ReviewQueue, archive: Archive
) -> Forget:
    """Everything outside the journal that may hold a piece of a session.

    The archive comes last: a pass that copies the log meanwhile is then known to need another one.
    """

    async def forget(session_id: str) -> int:
        unknown.forget_session(session_id)
        reviews.forget_session(session_id)
        gone = await outbox.erase(session_id)
        archive.forget(session_id)
        return gone

    return forget
