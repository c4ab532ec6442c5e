"""Sentences as people write them, one by one: what stands, what is denied, what stays open."""

import pytest

from acp_spec.model.calls import Claim, SettledCall
from acp_spec.model.payload import payload
from gateway.rewards.grounding.claims import Judged, judged
from gateway.rewards.grounding.findings import Standing


def _judged(text: str, output: str, named: str, *, value: str = "", derivation: str = "") -> Judged:
    """`named`: members of the output, apart by commas; empty for the whole output."""
    pointers = tuple(
        f"/calls/c/output/{key}" if key else "/calls/c/output" for key in named.split(",")
    )
    claim = Claim(text=text, value=payload(value.encode()), derivation=derivation, sources=pointers)
    return judged(claim, {"c": SettledCall(call_id="c", output=payload(output.encode()))})


STAND = (
    ("There is no fee for this.", '{"fee":0}', "fee", "", ""),
    ("Your account is not blocked.", '{"blocked":false}', "blocked", "", ""),
    ("Your account is active.", '{"blocked":false}', "blocked", "", ""),
    ("The card is not blocked.", '{"status":"ACTIVE"}', "status", "", ""),
    ("None are overdue.", '{"overdue":[]}', "overdue", "", ""),
    ("Delivery is free of charge.", '{"delivery_fee":0}', "delivery_fee", "", ""),
    ("You have 3 open invoices.", '{"open":["a","b","c"]}', "open", "", ""),
    (
        "The total is ₹1,25,000.50.",
        '{"total":125000.50,"currency":"INR"}',
        "total,currency",
        "",
        "",
    ),
    ("Der Betrag ist 1.234,56 €.", '{"betrag":1234.56,"currency":"EUR"}', "betrag", "", ""),
    ("It costs 12,50 EUR.", '{"price_cents":1250,"currency":"EUR"}', "price_cents", "", ""),
    ("It takes 2 h 30 min.", '{"duration_s":9000}', "duration_s", "", ""),
    ("About 15% of requests failed.", '{"failed_ratio":0.153}', "failed_ratio", "", ""),
    ("The file is 1.5 MB.", '{"size_bytes":1500000}', "size_bytes", "", ""),
    ("The file is 1.5 MiB.", '{"size_bytes":1572864}', "size_bytes", "", ""),
    ("It weighs 2.2 lb.", '{"weight_kg":1.0}', "weight_kg", "", ""),
    (
        "The meeting is on Friday, 4 December 2026 at 3:30 pm.",
        '{"at":"2026-12-04T15:30:00Z"}',
        "at",
        "",
        "",
    ),
    (
        "Your account is overdrawn by 50.00 GBP.",
        '{"balance":-50.00,"currency":"GBP"}',
        "balance",
        "",
        "",
    ),
    ("The account belongs to Anna Meyer.", '{"owner":"Anna Meyer"}', "owner", "", ""),
    ("Your card ends in 9534.", '{"card":"4929123412349534"}', "card", "", ""),
    ("Together they cost 30.", '{"a":10,"b":20}', "a,b", "", ""),
    ("The difference is 12.5.", '{"a":20,"b":7.5}', "a,b", "12.5", "a - b"),
    ("You will not pay more than 200 GBP.", '{"max":200,"currency":"GBP"}', "max", "", ""),
    ("The payment succeeded.", '{"status":"completed"}', "status", "", ""),
    ("Your rate is 3.85 %.", '{"rate_percent":3.85}', "rate_percent", "", ""),
    ("The parcel is in transit.", '{"status":"IN_TRANSIT"}', "status", "", ""),
    ("weather.today answered rain.", '"rain"', "", '"rain"', ""),
    ('x answered {"a":1,"b":"two"}.', '{"a":1,"b":"two"}', "", '{"a":1,"b":"two"}', ""),
    ("It opens at 9 am on 3 March.", '{"opens":"2027-03-03T09:00:00+01:00"}', "opens", "", ""),
    ("The limit is 1,000.", '{"limit":1000.00}', "limit", "", ""),
    ("The temperature is -5 degrees.", '{"temp":-5}', "temp", "", ""),
    ("Since 2019 you have been a customer.", '{"since":"2019-04-01"}', "since", "", ""),
    ("Between 3 and 5 days remain.", '{"min_days":3,"max_days":5}', "min_days,max_days", "", ""),
    (
        "The note says the customer asked for a refund.",
        '{"note":"The customer asked for a refund of the last order because it came late."}',
        "note",
        "",
        "",
    ),
    (
        "It weighs 12 kg.",
        '{"note":"The parcel weighs 12 kg and goes to Anna Meyer on 2026-12-04."}',
        "note",
        "",
        "",
    ),
    (
        "It weighs 12,000 g and goes on 4 December.",
        '{"note":"The parcel weighs 12 kg and goes to Anna Meyer on 2026-12-04."}',
        "note",
        "",
        "",
    ),
)

DENIED = (
    ("It is due on 16 May 2026.", '{"due":"2026-11-16"}', "due", "", ""),
    (
        "It weighs 13 kg.",
        '{"note":"The parcel weighs 12 kg and goes to Anna Meyer on 2026-12-04."}',
        "note",
        "",
        "",
    ),
    ("There is no fee for this.", '{"fee":1.5}', "fee", "", ""),
    ("Your account is not blocked.", '{"blocked":true}', "blocked", "", ""),
    ("Your account is blocked.", '{"blocked":false}', "blocked", "", ""),
    ("The card is not blocked.", '{"status":"BLOCKED"}', "status", "", ""),
    ("None are overdue.", '{"overdue":["i1"]}', "overdue", "", ""),
    ("You have 4 open invoices.", '{"open":["a","b","c"]}', "open", "", ""),
    ("It costs 125 EUR.", '{"price_cents":1250,"currency":"EUR"}', "price_cents", "", ""),
    ("It takes 2 h 40 min.", '{"duration_s":9000}', "duration_s", "", ""),
    ("The file is 1.5 GB.", '{"size_bytes":1500000}', "size_bytes", "", ""),
    (
        "The meeting is on Friday, 4 December 2026 at 4:30 pm.",
        '{"at":"2026-12-04T15:30:00Z"}',
        "at",
        "",
        "",
    ),
    ("The meeting is on Monday, 4 December 2026.", '{"at":"2026-12-04T15:30:00Z"}', "at", "", ""),
    (
        "Your account is overdrawn by 50.00 GBP.",
        '{"balance":50.00,"currency":"GBP"}',
        "balance",
        "",
        "",
    ),
    ("The account belongs to Anna Meier.", '{"owner":"Anna Meyer"}', "owner", "", ""),
    ("Your card ends in 9535.", '{"card":"4929123412349534"}', "card", "", ""),
    ("The difference is 13.5.", '{"a":20,"b":7.5}', "a,b", "13.5", "a - b"),
    ("The payment failed.", '{"status":"completed"}', "status", "", ""),
    ("Between 3 and 6 days remain.", '{"min_days":3,"max_days":5}', "min_days,max_days", "", ""),
)

OPEN = (
    ("Please call us within 30 days.", '{"balance":50.00,"currency":"GBP"}', "balance", "", ""),
    (
        "Your balance of 50.00 GBP is not available before Monday.",
        '{"balance":50.00,"currency":"GBP"}',
        "balance",
        "",
        "",
    ),
    ("Everything is fine.", '{"rate_percent":3.85}', "rate_percent", "", ""),
    ("The parcel will arrive tomorrow.", '{"due":"2026-12-03"}', "due", "", ""),
)


@pytest.mark.parametrize(("text", "output", "named", "value", "derivation"), STAND)
def test_what_the_sources_say_is_supported(
    text: str, output: str, named: str, value: str, derivation: str
) -> None:
    found = _judged(text, output, named, value=value, derivation=derivation)
    assert found.standing is Standing.STANDS, found.reason


@pytest.mark.parametrize(("text", "output", "named", "value", "derivation"), DENIED)
def test_what_a_source_denies_is_contradicted_and_the_reason_names_it(
    text: str, output: str, named: str, value: str, derivation: str
) -> None:
    found = _judged(text, output, named, value=value, derivation=derivation)
    assert found.standing is Standing.AGAINST, found.reason
    assert any(word in found.reason for word in ("/calls/c/output", "derivation", "no such day"))


@pytest.mark.parametrize(("text", "output", "named", "value", "derivation"), OPEN)
def test_what_no_source_speaks_of_is_left_to_a_person(
    text: str, output: str, named: str, value: str, derivation: str
) -> None:
    found = _judged(text, output, named, value=value, derivation=derivation)
    assert found.standing is Standing.OPEN, found.reason
    assert found.missing == ()


def test_a_source_that_leads_nowhere_is_missing_and_named() -> None:
    for named in ("nowhere", "a/b/c", "~2"):
        found = _judged("It is 5.", '{"a":5}', named)
        assert found.missing == (f"/calls/c/output/{named}",)
    elsewhere = Claim(text="It is 5.", sources=("/steps/c/output/a", "output", "/calls"))
    assert judged(elsewhere, {}).missing == elsewhere.sources


def test_a_claim_without_sources_has_none() -> None:
    assert judged(Claim(text="It is 5."), {}).missing == ("(none)",)


def test_a_source_longer_than_a_person_would_read_is_not_checked() -> None:
    long = _judged("It says so.", '{"a":"' + "x" * 301 + '"}', "a")
    assert long.standing is Standing.OPEN
    assert "too long" in long.reason
    whole_call = Claim(text="It is 5.", sources=("/calls/c",))
    assert judged(whole_call, {"c": SettledCall(call_id="c")}).standing is Standing.OPEN


def test_a_table_of_figures_is_no_sentence_and_is_left_alone() -> None:
    found = _judged("It is " + "5 " * 60, '{"a":5}', "a")
    assert found.standing is Standing.OPEN
    assert "more figures" in found.reason


def test_a_derivation_that_cannot_be_run_says_why() -> None:
    found = _judged("It is 5.", '{"a":5}', "a", value="5", derivation="a +")
    assert found.standing is Standing.OPEN
    assert "derivation" in found.reason


def test_other_parts_of_a_call_are_sources_too() -> None:
    call = SettledCall(call_id="c", action="ledger.fee", arguments=payload(b'{"amount":250.00}'))
    said = Claim(text="You asked about 250.00.", sources=("/calls/c/arguments/amount",))
    status = Claim(text="The call succeeded.", sources=("/calls/c/status",))
    failed = Claim(text="The call failed.", sources=("/calls/c/status",))
    assert judged(said, {"c": call}).standing is Standing.STANDS
    assert judged(status, {"c": call}).standing is Standing.STANDS
    assert judged(failed, {"c": call}).standing is Standing.AGAINST
