"""A contract goes into its workflow where it is named, and no other line moves."""

import json

import pytest

from acp_spec.codec.yaml_tree import json_text, read_tree
from acp_spec.sdk.workflow_files import mention_in, with_contract, workflow_of

CONTRACT = b"workflow: w\n# its terms\ninput_schema: {minimum: 0.10}\n"
INLINE = {"workflow": "w", "input_schema": {"minimum": 0.1}}


def read(text: str) -> dict[str, object]:
    tree = read_tree(text.encode()).tree
    assert tree is not None
    found: dict[str, object] = json.loads(json_text(tree))
    return found


@pytest.mark.parametrize("named", ["", "contract: t.yaml", "contract: 't.yaml'  # there"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_block_style(named: str, end: str) -> None:
    text = f"workflow: w\nsteps:\n  - 1\n{named}\noutput: 2{end}"
    joined = with_contract(text, CONTRACT)
    assert read(joined) == {"workflow": "w", "steps": [1], "contract": INLINE, "output": 2}
    assert joined.split("\n")[:3] == text.split("\n")[:3]
    assert "0.10" in joined


@pytest.mark.parametrize("text", ['{"workflow": "w"}', '{"workflow": "w", "contract": "t.yaml"}'])
def test_json(text: str) -> None:
    assert read(with_contract(text, CONTRACT)) == {"workflow": "w", "contract": INLINE}


def test_what_a_workflow_says_of_its_contract() -> None:
    named = mention_in("workflow: w\ncontract: t.yaml").file
    assert named is not None
    assert named.text == "t.yaml"
    assert mention_in("workflow: w\ncontract: {}").inline
    assert not mention_in("workflow: w").inline
    assert mention_in("[").workflow == ""
    assert (workflow_of(CONTRACT), workflow_of(b"["), workflow_of(b"{}")) == ("w", "", "")


def test_what_is_no_yaml_cannot_be_joined() -> None:
    with pytest.raises(ValueError, match="no YAML"):
        with_contract("workflow: w", b"[")
