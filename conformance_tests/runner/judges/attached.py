"""Rules over what only attach has."""

from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.judges.judging import NotSeen
from conformance_tests.runner.subject import Subject


def answer_of_its_role(seen: Exchange, subject: Subject) -> str | None:
    """The answer frame holds what the call asked for, or an error."""
    if not seen.answer.ok:
        raise NotSeen("the call was answered with an error")
    stated = seen.answer.headers.get("answered-as", "")
    return None if stated == seen.answer.do else f"{seen.answer.do} was answered as {stated}"
