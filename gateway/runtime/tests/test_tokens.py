"""Tokens: shown once, kept as a hash, gone when revoked, there again after a restart."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.errors import AcpFailure
from gateway.runtime.clock import ManualClock, SeededChance
from gateway.runtime.principal import Principal
from gateway.runtime.tokens import TokenCreated, TokenRequest, Tokens, subject_of
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table
from gateway.telemetry.masking import DEFAULT


def tokens_on(store: MemoryStore, clock: ManualClock | None = None) -> Tokens:
    return Tokens(store, WriteThrough(store), clock=clock or ManualClock(), chance=SeededChance(1))


def create(tokens: Tokens, *scopes: str, names: tuple[str, ...] = ()) -> TokenCreated:
    return asyncio.run(tokens.create(TokenRequest(scopes=scopes, tenant="bank", names=names)))


def test_a_token_makes_the_principal_it_was_made_for() -> None:
    tokens = tokens_on(MemoryStore())
    made = create(tokens, "component", "submit", names=("ledger",))
    assert tokens.verify(made.token) == Principal(
        tenant="bank",
        scopes=frozenset({"component", "submit"}),
        names=("ledger",),
        subject=f"token:{made.info.token_id}",
    )


def test_who_showed_a_token_can_be_told_apart_where_secrets_are_masked() -> None:
    subject = subject_of(create(tokens_on(MemoryStore()), "annotate").info)
    assert DEFAULT.text(subject) == subject


def test_the_secret_is_nowhere_on_disk() -> None:
    store = MemoryStore()
    made = create(tokens_on(store), "submit")
    secret = made.token.split("_", 2)[2].encode()  # it may hold "_" itself
    assert len(secret) >= 43
    for key, value in store.scan(Table.TOKEN, b""):
        assert secret not in key + value


def test_tokens_survive_a_restart_and_revoked_ones_do_not() -> None:
    store = MemoryStore()
    tokens = tokens_on(store)
    kept, revoked = create(tokens, "submit"), create(tokens, "submit")
    asyncio.run(tokens.revoke(revoked.info.token_id))
    again = tokens_on(store)
    assert again.verify(kept.token) is not None
    assert again.verify(revoked.token) is None
    assert [info.token_id for info in again.list()] == [kept.info.token_id]
    assert len(again) == 1


@given(st.text())
def test_no_other_text_is_a_token(text: str) -> None:
    tokens = tokens_on(MemoryStore())
    made = create(tokens, "submit")
    assert tokens.verify(text) is None
    assert tokens.verify(made.token + text) is None or not text
    assert tokens.verify(f"acp_{made.info.token_id}_{text}") is None


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (TokenRequest(scopes=()), "at least one of submit"),
        (TokenRequest(scopes=("root",)), "'root' is none of"),
        (TokenRequest(scopes=("submit",), tenant=""), "tenant"),
        (TokenRequest(scopes=("submit",), tenant="a\nb"), "printable"),
        (TokenRequest(scopes=("submit",), label="x" * 200), "label"),
        (TokenRequest(scopes=("submit",), names=("ledger",)), "names"),
        (TokenRequest(scopes=("submit",), days=-1), "days"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(request_: TokenRequest, said: str) -> None:
    with pytest.raises(AcpFailure, match=said):
        asyncio.run(tokens_on(MemoryStore()).create(request_))


def test_revoking_an_unknown_token_says_where_ids_are() -> None:
    with pytest.raises(AcpFailure, match="acp tokens list"):
        asyncio.run(tokens_on(MemoryStore()).revoke("nope"))


def test_a_components_token_may_serve_its_names_only_and_an_operator_every_name() -> None:
    tokens = tokens_on(MemoryStore())
    made = (
        create(tokens, "component", names=("ledger",)),
        create(tokens, "component", names=("*",)),
        create(tokens, "operate"),
        create(tokens, "admin"),
    )
    callers = [tokens.verify(one.token) for one in made]
    assert [one and one.may_serve("ledger") for one in callers] == [True] * 4
    assert [one and one.may_serve("cards") for one in callers] == [False, True, True, True]


def test_an_administrator_sees_makes_and_revokes_tokens_of_its_own_tenant_only() -> None:
    """One tenant's `admin` listed every tenant's tokens and could make itself one of each."""
    tokens = tokens_on(MemoryStore())
    mine = create(tokens, "admin").info
    own = asyncio.run(tokens.create(TokenRequest(scopes=("submit",)), tenant="bank")).info
    assert own.tenant == "bank"
    theirs = asyncio.run(tokens.create(TokenRequest(scopes=("submit",), tenant="shop"))).info
    seen = {info.token_id for info in tokens.list(tenant="bank")}
    assert seen == {mine.token_id, own.token_id}
    assert len(tokens.list()) == 3
    foreign = TokenRequest(scopes=("admin",), tenant="shop")
    with pytest.raises(AcpFailure, match="--data-dir") as refused:
        asyncio.run(tokens.create(foreign, tenant="bank"))
    assert refused.value.error.reason == "PERMISSION_DENIED"
    with pytest.raises(AcpFailure, match="no token"):
        asyncio.run(tokens.revoke(theirs.token_id, tenant="bank"))
    assert len(tokens) == 3
    asyncio.run(tokens.revoke(own.token_id, tenant="bank"))
    assert len(tokens) == 2


def test_who_holds_the_directory_makes_tokens_of_the_tenant_default_unless_told() -> None:
    tokens = tokens_on(MemoryStore())
    assert asyncio.run(tokens.create(TokenRequest(scopes=("admin",)))).info.tenant == "default"
