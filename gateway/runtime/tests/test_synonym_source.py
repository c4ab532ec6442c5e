"""A workflow's file gets synonyms and a version; every other line stays as a person wrote it."""

import pytest

from acp_spec.model.errors import AcpFailure
from gateway.engine.definition import Workflow
from gateway.engine.workflow_file import parse_workflow
from gateway.runtime.synonym_source import Synonym, with_synonyms

SOURCE = """# the hotline, as the desk wants it
workflow: hotline
version: 1.2.0      # raise it with each change
steps:
  - {name: act, role: execute, action: route, input_mapping: {n: 9007199254740993, p: 0.10}}
output: 'act.output'
contract:
  semantics:
    domains:
      intent:
        values:
          # what we know so far
          REFUND: [money back]   # the usual words
          TRACK: []
        threshold: 0.70
      queue: {values: [FAST, "404"], nearest: false}
    fields:
      - {in: input, at: /intent, domain: intent}
"""
FIELD_LINES_CHANGED = 4


def semantics_of(source: str) -> dict[str, dict[str, str]]:
    workflow = parse_workflow(source.encode())
    assert isinstance(workflow, Workflow), workflow
    assert workflow.contract.semantics is not None
    return {name: dict(one.synonyms) for name, one in workflow.contract.semantics.domains.items()}


def test_synonyms_are_added_where_they_belong_and_comments_stay() -> None:
    added = (
        Synonym(domain="intent", value="refnd", means="REFUND"),
        Synonym(domain="intent", value="where: is it?", means="TRACK"),
        Synonym(domain="queue", value="on", means="404"),
    )
    edited = with_synonyms(SOURCE, added, version="1.3.0")
    assert semantics_of(edited) == {
        "intent": {"money back": "REFUND", "refnd": "REFUND", "where: is it?": "TRACK"},
        "queue": {"on": "404"},
    }
    before, after = SOURCE.splitlines(), edited.splitlines()
    changed = [line for line in before if line not in after]
    assert len(changed) == FIELD_LINES_CHANGED, edited
    assert "# the usual words" in edited
    assert "version: 1.3.0      # raise it with each change" in edited


def test_a_file_in_json_stays_readable_as_json() -> None:
    text = (
        '{"workflow": "w", "version": "1.0.0", "steps": [{"name": "a", "role": "plan"}],'
        ' "contract": {"semantics": {"domains": {"d": {"values": {"A": []}}}}}}'
    )
    added = (Synonym(domain="d", value="alpha", means="A"),)
    assert semantics_of(with_synonyms(text, added, version="1.1.0")) == {"d": {"alpha": "A"}}


@pytest.mark.parametrize(
    "synonym",
    [
        Synonym(domain="none", value="x", means="REFUND"),
        Synonym(domain="intent", value="x", means="NONE"),
    ],
)
def test_what_has_no_place_in_the_file_is_refused_and_nothing_is_guessed(synonym: Synonym) -> None:
    with pytest.raises(AcpFailure, match="by hand"):
        with_synonyms(SOURCE, (synonym,), version="1.3.0")


@pytest.mark.parametrize("number", ["12345678901234567890.10", "1e400"])
def test_a_number_that_the_editor_would_spell_otherwise_is_never_changed(number: str) -> None:
    text = SOURCE.replace("p: 0.10", f"p: {number}")
    with pytest.raises(AcpFailure, match="something else in it would change"):
        with_synonyms(text, (Synonym(domain="intent", value="x", means="REFUND"),), version="1.3.0")
