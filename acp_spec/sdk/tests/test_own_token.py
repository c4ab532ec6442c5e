"""A component's own variable wins over the one that it shares with the `acp` command."""

from acp_spec.sdk.own_token import own_token


def test_the_components_own_token_wins() -> None:
    assert own_token({"ACP_COMPONENT_TOKEN": "own", "ACP_TOKEN": "operator's"}) == "own"


def test_the_shared_one_counts_where_no_other_is_set() -> None:
    assert own_token({"ACP_TOKEN": "shared"}) == "shared"
    assert own_token({"ACP_COMPONENT_TOKEN": "", "ACP_TOKEN": "shared"}) == "shared"


def test_without_any_there_is_none() -> None:
    assert own_token({}) is None
    assert own_token({"ACP_COMPONENT_TOKEN": "", "ACP_TOKEN": ""}) is None
