"""Masking: what is secret is in no output, what is not stays byte for byte."""

import json
import time
from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.codec.secret_schema import declared_secrets
from gateway.telemetry.masking import MASK, Masker
from gateway.telemetry.secret_names import DEFAULT_FIELDS

MASKER = Masker()
HIDDEN: Final = "qZ7-hidden-value"
KEY_NAMES = ("password", "userPassword", "X-API-Key", "access_token", "client-secret", "Cookie")
CARD, KEY = "4111 1111 1111 1111", "sk-abcdefghijklmnopqrstuv"
BLOCK = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4\n\nMHcCAQ+/\n-----END EC PRIVATE KEY-----"

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

harmless = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="0123456789"))
"""Without digits nothing looks like a key; names of fields are checked below."""


def is_harmless(text: str) -> bool:
    folded = "".join(c for c in text.lower() if c.isascii() and c not in "_-. ")
    return not any(name.replace("_", "") in folded for name in (*DEFAULT_FIELDS, "bearer", "basic"))


words = harmless.filter(is_harmless)
harmless_json = st.recursive(
    st.none() | st.booleans() | st.integers(-9999, 9999) | st.floats(-1e6, 1e6) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


def dumped(value: object, *, is_ascii: bool) -> bytes:
    return json.dumps(value, ensure_ascii=is_ascii).encode("utf-8")


@given(harmless_json, st.booleans())
def test_a_document_without_secrets_stays_byte_for_byte(value: Json, is_ascii: bool) -> None:
    document = dumped(value, is_ascii=is_ascii)
    assert MASKER.json(document) == document


@given(words)
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert MASKER.text(text) == text


@given(
    harmless_json,
    st.sampled_from(KEY_NAMES),
    st.sampled_from((HIDDEN, [HIDDEN], {"a": [HIDDEN, {HIDDEN: 1}]}, 918273645)),
    st.booleans(),
)
def test_a_secret_field_is_gone_and_all_around_it_is_there(
    around: Json, name: str, secret: Json, is_ascii: bool
) -> None:
    document: Json = {"before": around, name: secret, "list": [{"deep": {name: secret}}, around]}
    masked = MASKER.json(dumped(document, is_ascii=is_ascii))
    assert HIDDEN.encode() not in masked
    assert b"918273645" not in masked
    wanted = {"before": around, name: MASK, "list": [{"deep": {name: MASK}}, around]}
    assert masked == dumped(wanted, is_ascii=is_ascii)
    assert MASKER.json(masked) == masked


@given(st.sampled_from((CARD, KEY, BLOCK, f"Bearer {HIDDEN}", f"https://u:{HIDDEN}@h/")), words)
def test_what_looks_like_a_secret_is_gone_from_values_keys_and_texts(
    secret: str, rest: str
) -> None:
    kept = secret.replace("Bearer ", "").replace("https://u:", "").replace("@h/", "")
    text = f"{rest} {secret} {rest}"
    for is_ascii in (True, False):
        document = dumped({"a": [text], text: secret}, is_ascii=is_ascii)
        masked = MASKER.json(document)
        assert kept not in json.dumps(json.loads(masked), ensure_ascii=False)
        assert json.dumps(kept)[1:-1].encode() not in masked
        assert MASKER.json(masked) == masked
    assert kept not in MASKER.text(text)
    assert MASKER.text(text).startswith(f"{rest} ")
    assert MASKER.text(text).endswith(f" {rest}")


@pytest.mark.parametrize(
    ("document", "masked"),
    [
        (rb'{"pass\u0077ord": "x" }', rb'{"pass\u0077ord": "***" }'),
        (rb'{"a": "Bea\u0072er abc12345\u002d9 x"}', rb'{"a": "Bearer *** x"}'),
        (rb'{"a":"http:\/\/h"}', rb'{"a":"http:\/\/h"}'),
        (rb'{"a":"http:\/\/u:pw@h"}', b'{"a":"http://u:***@h"}'),
        (rb'{"token":{"b":"}\"","c":[1]},"d":1}', b'{"token":"***","d":1}'),
        (
            b'{"password":null,"secret":true,"cvc":123}',
            b'{"password":null,"secret":true,"cvc":"***"}',
        ),
        (b'{"n":4111111111111111,"m":4111111111111112}', b'{"n":"***(card)","m":4111111111111112}'),
        (
            rb'{"arguments":"{\"password\":\"x\",\"n\": 1}"}',
            rb'{"arguments":"{\"password\":\"***\",\"n\": 1}"}',
        ),
        (rb'"\ud800 Bearer abc123456"', rb'"\ud800 Bearer ***"'),
        ('{"größe":"ü","password":"ü"}'.encode(), '{"größe":"ü","password":"***"}'.encode()),
        (b'"4111-1111-1111-1111"', b'"***(card)"'),
        (b'{"password":"a","password":"b"}', b'{"password":"***","password":"***"}'),
        (b'{"max_tokens":5,"shipping":"a","spin":1}', b'{"max_tokens":5,"shipping":"a","spin":1}'),
        (
            b'{"at":1764480000000,"ns":1764480000000000000}',
            b'{"at":1764480000000,"ns":1764480000000000000}',
        ),
        (b'{"share":0.4111111111111111}', b'{"share":0.4111111111111111}'),
        (b"[] 4111 1111 1111 1111 []", b"[] ***(card) []"),
        (b'"[] 4111 1111 1111 1111 []"', b'"[] ***(card) []"'),
        (b"", b""),
    ],
)
def test_documents(document: bytes, masked: bytes) -> None:
    assert MASKER.json(document) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=hunter2, user: x", "password=***, user: x"),
        ("password=hun,ter;2 next", "password=*** next"),
        ('{"api_key": "a\\"b c", "d": 1}', '{"api_key": "***", "d": 1}'),
        ('said {\\"apiKey\\": \\"a b\\"} to it', 'said {\\"apiKey\\": \\"***\\"} to it'),
        ("url?access_token=abc&x=1", "url?access_token=***&x=1"),
        ("Authorization: Basic dXNlcjpw, x", "Authorization: Basic ***, x"),
        ("a basic problem, Basic dXNlcjpwYXNz", "a basic problem, Basic ***"),
        ("my PIN: 1234, spin: 5", "my PIN: ***, spin: 5"),
        ("password: null, tokens: 12", "password: null, tokens: 12"),
        ("on 2026-11-30 4111-1111-1111-1111.", "on 2026-11-***(card)."),
        (f"key {KEY} end", "key ***(key) end"),
        (f"{BLOCK} tail", "***(private_key) tail"),
        ("-----BEGIN PRIVATE KEY-----\nMII cut off", "***(private_key)"),
        ("-----BEGIN CERTIFICATE-----\nMII", "-----BEGIN CERTIFICATE-----\nMII"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc-_x", "***(web_token)"),
        ("by token:0a1b2c3d4e5f", "by token:***"),
        ("token:0a1b2c3d4e5f0", "token:***"),
    ],
)
def test_texts(text: str, masked: str) -> None:
    assert MASKER.text(text) == masked
    assert MASKER.text(masked) == masked


@pytest.mark.parametrize("who", ["token:0a1b2c3d4e5f", "gateway/comment-reader/token:0a1b2c3d4e5f"])
def test_who_showed_a_token_is_no_secret_but_in_a_secret_field(who: str) -> None:
    assert MASKER.text(who) == who
    told = json.dumps({"author": who, "token": who, "said": f"I am {who}"}).encode()
    safe = json.loads(MASKER.json(told))
    assert safe["author"] == who
    assert safe["token"] == "***"
    assert "0a1b" not in safe["said"]


@given(st.binary(max_size=200))
def test_any_bytes_are_taken_and_twice_is_once(data: bytes) -> None:
    masked = MASKER.json(data)
    assert MASKER.json(masked) == masked


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "password",
                    "pin",
                    ":",
                    "=",
                    '"',
                    "'",
                    "\\",
                    "{",
                    "}",
                    "[",
                    "]",
                    ",",
                    " ",
                    "a",
                    "\n",
                ),
                *(
                    "\\u0070",
                    "Bearer ",
                    "1234",
                    "4111111111111111",
                    "***",
                    "(card)",
                    "://",
                    "@",
                    "ü",
                ),
                *(
                    "-----BEGIN ",
                    "PRIVATE KEY-----",
                    "-----END ",
                    "null",
                    "sk-",
                    "eyJ",
                    ".",
                    "basic ",
                ),
                "abcdefghijklmnop",
            ]
        ),
        max_size=25,
    )
)
def test_pieces_of_secrets_in_any_order_give_valid_json_and_twice_is_once(parts: list[str]) -> None:
    text = "".join(parts)
    masked = MASKER.text(text)
    assert MASKER.text(masked) == masked
    document = json.dumps({"a": text, "b": [text]}).encode()
    json.loads(MASKER.json(document))


def test_what_a_schema_declares_is_secret_where_it_stands() -> None:
    schema: Mapping[str, object] = {
        "properties": {
            "who": {"$ref": "#/$defs/person"},
            "codes": {"type": "array", "items": {"type": "string", "writeOnly": True}},
            "maybe": {"anyOf": [{"type": "null"}, {"format": "password"}]},
            "extra": {"additionalProperties": {"x-acp-secret": True}},
            "plain": {"type": "string", "writeOnly": False},
        },
        "$defs": {
            "person": {
                "properties": {
                    "mother": {"type": "string", "x-acp-secret": True},
                    "child": {"$ref": "#/$defs/person"},
                }
            }
        },
    }
    declared = declared_secrets(json.dumps(schema).encode())
    document = (
        b'{"who":{"mother":"M","child":{"mother":"N"},"name":"n"},"codes":["C",7],"maybe":"P",'
        b'"extra":{"any":{"x":"E"}},"plain":"p","mother":"not declared"}'
    )
    assert MASKER.json(document, declared) == (
        b'{"who":{"mother":"***","child":{"mother":"***"},"name":"n"},"codes":"***","maybe":"***",'
        b'"extra":{"any":"***"},"plain":"p","mother":"not declared"}'
    )
    assert MASKER.json(b'{"codes":1}') == b'{"codes":1}'
    assert MASKER.json(b'[1,"a"]', frozenset({()})) == b'"***"'


def test_operators_name_fields_and_paths_and_add_and_switch_off_kinds() -> None:
    masker = Masker(("badge", "card.number", "-pin"), {"staff": r"EMP-[0-9]{4,8}+", "card": ""})
    document = b'{"myBadge":1,"pin":"p","card":[{"number":5}],"number":6,"who":"EMP-12345"}'
    assert masker.json(document) == (
        b'{"myBadge":"***","pin":"p","card":[{"number":"***"}],"number":6,"who":"***(staff)"}'
    )
    assert masker.text(f"{CARD} EMP-12345") == f"{CARD} ***(staff)"
    assert masker.json(b'{"password":"p"}') == b'{"password":"***"}'


@pytest.mark.parametrize("field", ["", "a..b", "a b", ".", 'a"', "-badge"])
def test_a_field_that_is_none_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match="is no field|no usual name"):
        Masker((field,))


def test_a_kind_that_is_not_there_cannot_be_switched_off() -> None:
    with pytest.raises(ValueError, match="no kind to switch off"):
        Masker((), {"cards": ""})


def test_what_was_secret_in_one_place_is_found_in_others() -> None:
    document = b'{"password":"hunter2-x","pin":1234567,"token":{"a":["deep-one"]},"cvc":"123"}'
    known = MASKER.values(document)
    assert set(known) == {"hunter2-x", "1234567", "deep-one"}
    other = b'{"said":"not hunter2-x!","n":1234567,"m":12345678,"hunter2-x":["deep\\u002done"]}'
    assert MASKER.json(other, known=known) == (
        b'{"said":"not ***!","n":"***","m":12345678,"***":["***"]}'
    )
    assert MASKER.text("hunter2-x and 123", known=known) == "*** and 123"
    assert MASKER.values(b'{"a":"hunter2-x"}', frozenset({("a",)})) == ("hunter2-x",)
    assert MASKER.values(b'["hunter2-x"]', frozenset({()})) == ("hunter2-x",)
    assert MASKER.values(b'{"a":"hunter2-x"}') == MASKER.values(b"password") == ()


HOSTILE = (
    "password=" * 30_000,
    "Bearer " * 40_000,
    "://" + "a:" * 130_000,
    "4 " * 130_000,
    "4111-" * 50_000,
    "-----BEGIN " * 25_000,
    "-----BEGIN PRIVATE KEY-----" * 10_000,
    "sk-" * 90_000,
    "eyJ." * 60_000,
    '{"a":' * 50_000,
    "[" * 250_000,
    '"\\' * 120_000,
    'password="\\' * 20_000,
    "password:" + " " * 250_000,
    "basic a" * 35_000,
    '{"password":' + "[" * 250_000,
)


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:12].strip() for text in HOSTILE])
def test_a_quarter_of_a_megabyte_made_to_be_slow_is_done_in_bounded_time(text: str) -> None:
    began = time.process_time()
    MASKER.text(text)
    MASKER.json(text.encode())
    MASKER.json(json.dumps([text]).encode())
    # Takes 0.1 to 1 s; a search that goes back in every combination would take hours.
    assert time.process_time() - began < 60
