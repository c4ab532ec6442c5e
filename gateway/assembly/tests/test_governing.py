"""The settings and the board each list the words, for the layers' sake; here they are one."""

from gateway.assembly.governing import policy_of
from gateway.board.policy import Compare
from gateway.board.proposals import ChangeKind, EvidenceKind
from gateway.config.board import BoardSettings, EvidenceSource, GovernedChange


def test_the_settings_know_every_kind_of_change_and_of_evidence_and_no_other() -> None:
    assert {one.value for one in GovernedChange} == {one.value for one in ChangeKind}
    assert {one.value for one in EvidenceSource} == {one.value for one in EvidenceKind}


def test_a_bound_of_each_form_is_read_as_it_is_written() -> None:
    texts = [f"counts.failed {compare.value} -1.5" for compare in Compare]
    evidence = {"kind": "CONFORMANCE", "bounds": texts, "max_age_days": 0.5}
    rule = {"approvals": {"owner": 2}, "evidence": [evidence]}
    policy = policy_of(BoardSettings.model_validate({"rules": {"RETIREMENT": rule}}))
    (wanted,) = policy.rule(ChangeKind.RETIREMENT).evidence
    assert [str(bound) for bound in wanted.bounds] == texts
    assert (wanted.kind, wanted.max_age_ms) == (EvidenceKind.CONFORMANCE, 43_200_000)
