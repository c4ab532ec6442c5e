"""The rules file that docs/rewards.md shows is one that is taken."""

import re
from pathlib import Path

from gateway.rewards.rules import RewardRules
from gateway.rewards.rules_file import parse_rules

DOCS = Path(__file__).parents[3] / "docs" / "rewards.md"


def test_every_rules_file_in_the_docs_is_valid() -> None:
    shown = re.findall(r"```yaml\n(rewards:.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert shown
    for text in shown:
        found = parse_rules(text.encode())
        assert isinstance(found, RewardRules), found
