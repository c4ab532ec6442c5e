"""What a judge is."""

from collections.abc import Callable

from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.subject import Subject


class NotSeen(Exception):
    """There was nothing to judge; the text says what was missing."""


Judge = Callable[[Exchange, Subject], str | None]
