"""Rules over answers of Execute, whole and partial."""

import jsonschema_rs

from conformance_tests.messages.tree import Text, plain, read_json
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.judges.judging import NotSeen
from conformance_tests.runner.subject import Subject, compiles_offline


def output_or_operation(seen: Exchange, subject: Subject) -> str | None:
    tree = seen.answer.tree or {}
    held = [name for name in ("output", "operation") if name in tree]
    return None if len(held) == 1 else f"the answer holds {' and '.join(held) or 'neither'}"


def output_fits_schema(seen: Exchange, subject: Subject) -> str | None:
    schema = subject.actions.get(str(seen.request.get("action")), {}).get("output_schema")
    output = (seen.answer.tree or {}).get("output")
    if not isinstance(schema, Text) or not isinstance(output, Text):
        raise NotSeen("the action has no output_schema")
    if compiles_offline(schema):
        raise NotSeen("the output_schema does not compile")
    validator = jsonschema_rs.validator_for(schema.data.decode())
    problem = next(iter(validator.iter_errors(output.value())), None)
    return None if problem is None else f"output {output.data[:100]!r}: {problem.message}"


def read_performs_nothing(seen: Exchange, subject: Subject) -> str | None:
    action = subject.actions.get(str(seen.request.get("action")), {})
    if action.get("effect") != "READ":
        raise NotSeen("no READ action was asked")
    stated = seen.answer.side_effect
    return "a READ action answered PERFORMED" if stated == "PERFORMED" else None


def as_the_example_says(seen: Exchange, subject: Subject) -> str | None:
    wanted = seen.request.get("@output")
    if not isinstance(wanted, Text):
        return None
    got = (seen.answer.tree or {}).get("output")
    if isinstance(got, Text) and plain(got) == plain(wanted):
        return None
    return (
        f"expected {wanted.data[:100]!r}, got {got.data[:100] if isinstance(got, Text) else got!r}"
    )


def no_side_effect(seen: Exchange, subject: Subject) -> str | None:
    stated = seen.answer.side_effect or "NONE"
    return None if stated == "NONE" else f"a safe example answered side effect {stated}"


def lines_are_progress(seen: Exchange, subject: Subject) -> str | None:
    """All lines but the last are Progress, the last is the response or an error body."""
    answer = seen.answer
    if not answer.headers.get("content-type", "").startswith("application/x-ndjson"):
        raise NotSeen("the component answered without partial output")
    lines = [line for line in answer.body.split(b"\n") if line.strip()]
    trees = [read_json(line, "ExecuteResponse") for line in lines]
    for number, tree in enumerate(trees, 1):
        if tree is None:
            return f"line {number} is no JSON object"
        final = bool({"output", "operation", "error"} & set(tree))
        if final and number < len(trees):
            return f"line {number} of {len(trees)} already holds the response"
        if not final and number == len(trees):
            return "the last line is no response"
    return None if trees else "there is no line"


def one_response_last(seen: Exchange, subject: Subject) -> str | None:
    items = seen.answer.items
    kinds = ["response" if item and "response" in item else "progress" for item in items]
    if kinds.count("response") == 1 and kinds[-1] == "response":
        return None
    return f"the stream had {', '.join(kinds) or 'nothing'}"
