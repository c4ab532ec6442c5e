"""Rewards, wired: the rules that hold, where they are kept, and the file they may come from; and
who is put up for review by what the records say.
"""

from dataclasses import dataclass

from acp_spec.model.trajectory import Trajectory
from gateway.assembly.identity import kept_secret
from gateway.assembly.masking import masker_of
from gateway.board.audit import AuditLog
from gateway.config.rewards import RewardSettings
from gateway.config.settings import Settings
from gateway.engine.states import SessionState
from gateway.rewards.scoring import Scorer
from gateway.runtime.clock import Clock
from gateway.runtime.comment_reader import CommentReader, Tell
from gateway.runtime.context import ContextMaker
from gateway.runtime.driver import Observer
from gateway.runtime.review_queue import ReviewQueue
from gateway.runtime.reviews import JudgedSessions, Reviews
from gateway.runtime.reward_file import RewardFile
from gateway.runtime.reward_rules import RewardBook
from gateway.runtime.scored import Scored
from gateway.runtime.targets import Targets
from gateway.stores.durable import Durable
from gateway.stores.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewarding:
    """The rewards of one gateway; `file` is started and closed with it."""

    scored: Scored
    book: RewardBook
    queue: ReviewQueue
    file: RewardFile | None = None
    reader: CommentReader | None = None

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who hears of feedback."""
        return () if self.reader is None else (self.reader,)

    def recorded(self, state: SessionState) -> Trajectory:
        """The record for the outbox; its session may be put up for review by it."""
        found = self.scored.record(state)
        self.queue.consider(found)
        return found

    def reviews(
        self, sessions: JudgedSessions, settings: Settings, *, audit: AuditLog, clock: Clock
    ) -> Reviews:
        """The reviewers' desk."""
        return Reviews(
            queue=self.queue,
            sessions=sessions,
            audit=audit,
            masker=masker_of(settings),
            now_ms=clock.now_ms,
        )

    def connect(self, targets: Targets, contexts: ContextMaker, *, tell: Tell) -> None:
        """Before the first event."""
        if self.reader is not None:
            self.reader.connect(targets, contexts, tell=tell)

    def start(self) -> None:
        if self.file is not None:
            self.file.start()

    async def close(self) -> None:
        if self.reader is not None:
            self.reader.close()
        if self.file is not None:
            await self.file.close()


def rewarding_of(
    settings: RewardSettings, store: Store, *, durable: Durable, audit: AuditLog, clock: Clock
) -> Rewarding:
    """What rewards are made by from the first session on: the rules that held when it stopped."""
    scorer = Scorer()
    book = RewardBook(scorer, store, durable=durable, audit=audit, now_ms=clock.now_ms)
    file = None
    if settings.rules_file is not None:
        file = RewardFile(settings.rules_file, book, every_ms=settings.reload_ms)
    reader = None
    if settings.reflector:
        reader = CommentReader(settings.reflector, timeout_ms=settings.reflector_timeout_ms)
    return Rewarding(
        scored=Scored(scorer),
        book=book,
        queue=ReviewQueue(store, durable, secret=lambda: kept_secret(store)),
        file=file,
        reader=reader,
    )
