"""The suite as one call: from what a user typed to a finished run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from conformance_tests.runner.component_suite import Options, run_component
from conformance_tests.runner.dialling import Dial, told
from conformance_tests.runner.fixtures import WrongFixtures, read_fixtures
from conformance_tests.runner.gateway_suite import run_gateway
from conformance_tests.runner.known_failing import Known, WrongList, apply, read_list
from conformance_tests.runner.library import library
from conformance_tests.runner.requirements import Party
from conformance_tests.runner.results import Outcome, Run


class Wrong(ValueError):
    """What was typed cannot be used; the message says what to write."""


def options_of(
    targets: tuple[str, ...],
    kind: str,
    *,
    fixtures: Path | None = None,
    seed: int = 1,
    allow_side_effects: bool = False,
) -> Options:
    """Raises Wrong."""
    try:
        return Options(
            targets=targets,
            kind=Party(kind),
            fixtures=read_fixtures(fixtures),
            seed=seed,
            allow_side_effects=allow_side_effects,
        )
    except WrongFixtures as problem:
        raise Wrong(str(problem)) from None
    except ValueError:
        raise Wrong(f"--kind is component, gateway or sdk, not {kind!r}") from None


def read_known(path: Path | None) -> list[Known]:
    """The list of what is known to fail; empty without a file. Raises Wrong."""
    try:
        return read_list(path.read_text(encoding="utf-8")) if path else []
    except (OSError, WrongList) as problem:
        raise Wrong(f"{path}: {problem}") from None


async def run_suite(options: Options, *, known: Sequence[Known] = (), dial: Dial = told) -> Run:
    """Run it. Raises Wrong for a target that is no URL, an address that cannot be bound, and a
    case that is none."""
    _check_only(options)
    try:
        gateway = options.kind is Party.GATEWAY
        run = await (run_gateway(options) if gateway else run_component(options, dial=dial))
    except (ValueError, OSError) as problem:
        raise Wrong(str(problem)) from None
    results, problems = apply(known, run.results)
    return replace(
        run,
        results=tuple(results),
        problems=(*run.problems, *problems, *_nothing_seen(run)),
    )


def _check_only(options: Options) -> None:
    """A typing mistake would run nothing, and nothing fails nowhere. Raises Wrong."""
    cases = library(options.kind)
    known = {name for case in cases for name in (case.id, case.requirement.id)}
    unknown = [name for name in options.only if name not in known]
    if unknown:
        raise Wrong(
            f"--only {unknown[0]}: no case of a {options.kind.value} has that id or requirement;"
            " docs/conformance.md lists them"
        )


def _nothing_seen(run: Run) -> tuple[str, ...]:
    """Who was asked nothing has not been seen to conform."""
    if any(one.outcome is not Outcome.NOT_APPLICABLE for one in run.results):
        return ()
    return ("nothing that was asked for applies to this target: it was not seen to hold anything",)
