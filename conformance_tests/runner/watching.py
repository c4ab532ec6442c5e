"""Rules over everything that was said in a run: each watch reads the log after the scenarios.

A watch that saw nothing to judge is no green: it is not applicable when its case says why that may
be, else not tested.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from conformance_tests.messages.tree import Tree, Value
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.checks import one_of, run_checks
from conformance_tests.runner.expansion import Planned
from conformance_tests.runner.judges import JUDGES, NotSeen
from conformance_tests.runner.requirements import Party
from conformance_tests.runner.results import Finding, Outcome, Result, settle
from conformance_tests.runner.subject import Subject

OWN_STEPS: Final = ("heard", "say", "restart", "attach", "wire")
FINDINGS_MAX: Final = 3
"""A broken rule shows everywhere; three places are enough for a person."""


def watch(planned: Planned, log: Iterable[Exchange], *, subject: Subject) -> Result:
    """The result of one watch over what was said on its binding."""
    rule = planned.case.watch
    assert rule is not None
    findings: list[Finding] = []
    judged = 0
    unseen = "nothing was said that this rule is about"
    for seen in log:
        other = planned.case.kind is not Party.GATEWAY and seen.answer.binding != planned.binding
        if other or seen.answer.do in OWN_STEPS or not _is_about(seen, rule.when):
            continue
        try:
            found = list(_findings(rule.expect, seen, subject=subject))
        except NotSeen as nothing:
            unseen = str(nothing)
            continue
        judged += 1
        findings += [f for f in found if f is not None]
    if not judged:
        outcome = Outcome.NOT_APPLICABLE if planned.case.none else Outcome.NOT_TESTED
        return planned.result(outcome, reason=planned.case.none or unseen)
    outcome = Outcome.FAILED if findings else Outcome.PASSED
    done = planned.case.checks
    result = replace(
        planned.result(outcome), checks_done=done, findings=tuple(findings[:FINDINGS_MAX])
    )
    return settle(result)


def _findings(expect: Tree, seen: Exchange, *, subject: Subject) -> Iterable[Finding | None]:
    found = list(run_checks(expect, seen.answer, label="every"))
    for name in one_of(expect.get("judge", [])):
        problem = JUDGES[str(name)](seen, subject)
        message = None if problem is None else f"{problem} (seen in {seen.case})"
        found.append(None if message is None else Finding(check=f"every.{name}", message=message))
    return found


def _is_about(seen: Exchange, when: Tree) -> bool:
    facts: dict[str, Value] = {
        "do": seen.answer.do,
        "ok": seen.answer.ok,
        "wrong": seen.wrong,
        "code": seen.answer.code,
        "accepts_stream": seen.accepts_stream,
        "heard": seen.answer.do.startswith("heard."),
        "binding": seen.answer.binding,
    }
    return all(facts[key] in one_of(wanted) for key, wanted in when.items())
