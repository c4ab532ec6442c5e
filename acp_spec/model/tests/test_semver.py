"""Versions in order, and who is inside which range."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.semver import Version, VersionError, matches, parse, parse_range, split_name

IN_ORDER = [
    "0.0.0", "0.0.1", "0.1.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta",
    "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0-0",
    "2.0.0",
]  # fmt: skip

MATCHES = [
    ("1.2.3", "", True), ("1.2.3", "*", True), ("1.2.3", "x", True), ("1.2.3", "1.x", True),
    ("2.0.0", "1.x", False), ("1.2.3", "1.2.3", True), ("1.2.4", "1.2.3", False),
    ("1.2.3", "=1.2.3", True), ("1.2.9", "1.2", True), ("1.3.0", "1.2", False),
    ("1.2.9", "1.2.x", True), ("1.9.0", "1", True),
    ("1.2.0", "^1.2", True), ("1.99.0", "^1.2", True), ("1.1.9", "^1.2", False),
    ("2.0.0", "^1.2", False), ("2.0.0-rc.1", "^1.2", False), ("0.2.9", "^0.2.3", True),
    ("0.3.0", "^0.2.3", False), ("0.0.3", "^0.0.3", True), ("0.0.4", "^0.0.3", False),
    ("0.0.9", "^0.0", True), ("0.1.0", "^0.0", False), ("0.9.0", "^0", True),
    ("1.0.0", "^0", False),
    ("1.2.9", "~1.2.3", True), ("1.3.0", "~1.2.3", False), ("1.2.2", "~1.2.3", False),
    ("1.2.0", "~1.2", True), ("1.9.0", "~1", True), ("2.0.0", "~1", False),
    ("1.2.0", ">=1.2", True), ("9.0.0", ">=1.2", True), ("1.1.9", ">=1.2", False),
    ("1.3.0", ">1.2", True), ("1.2.9", ">1.2", False), ("1.2.4", ">1.2.3", True),
    ("1.2.3", ">1.2.3", False), ("1.2.9", "<=1.2", True), ("1.2.3", "<=1.2.3", True),
    ("1.2.4", "<=1.2.3", False), ("1.9.9", "<2", True), ("2.0.0", "<2", False),
    ("1.5.0", ">=1.2 <1.6", True), ("1.6.0", ">=1.2 <1.6", False),
    ("1.0.0-rc.1", "", False), ("1.0.0-rc.1", "1.0.0-rc.1", True),
    ("1.0.0-rc.2", ">=1.0.0-rc.1", True),
    ("1.0.0", ">=1.0.0-rc.1", True), ("1.1.0-rc.1", ">=1.0.0-rc.1", False),
    ("1.2.3+build.5", "1.2.3", True),
]  # fmt: skip


def test_versions_sort_by_precedence() -> None:
    assert [str(v) for v in sorted(map(parse, reversed(IN_ORDER)))] == IN_ORDER


def test_build_metadata_is_kept_but_not_compared() -> None:
    assert parse("1.0.0+a") == parse("1.0.0+b")
    assert hash(parse("1.0.0+a")) == hash(parse("1.0.0+b"))
    assert str(parse("1.0.0-rc.1+a.b")) == "1.0.0-rc.1+a.b"


NO_VERSION = [
    "", "1", "1.0", "01.0.0", "1.0.0.0", "v1.0.0", "1.0.0-", "1.0.0-01", "1.0.0 ", "1.0.x",
    "1.0.0+",
    "1.0.0-a..b", "9" * 200,
]  # fmt: skip


@pytest.mark.parametrize("text", NO_VERSION)
def test_what_is_no_version_is_an_error_with_advice(text: str) -> None:
    with pytest.raises(VersionError, match="major.minor.patch"):
        parse(text)


@pytest.mark.parametrize(("version", "wanted", "expected"), MATCHES)
def test_a_version_lies_in_a_range_or_not(version: str, wanted: str, expected: bool) -> None:
    assert matches(version, wanted) is expected


@pytest.mark.parametrize(
    "text", ["^", "1.2.3.4", "latest", "^v1", ">= 1.2", "1.2-rc", "^1.2+b", "||"]
)
def test_what_is_no_range_is_an_error(text: str) -> None:
    with pytest.raises(VersionError):
        parse_range(text)


def test_a_name_is_split_from_its_range() -> None:
    assert split_name("fees") == ("fees", "")
    assert split_name("fees@^1.2") == ("fees", "^1.2")
    with pytest.raises(VersionError):
        split_name("fees@newest")


numbers = st.integers(0, 12)
versions = st.builds(
    Version,
    numbers,
    numbers,
    numbers,
    st.lists(st.sampled_from(["0", "7", "rc", "a-b"])).map(tuple),
)


@given(versions)
def test_a_version_survives_being_written(version: Version) -> None:
    assert parse(str(version)) == version
    assert matches(str(version), str(version))


@given(versions, versions)
def test_comparators_agree_with_the_order(a: Version, b: Version) -> None:
    a, b = Version(*a.core), Version(*b.core)
    assert matches(str(a), f">={b}") == (a >= b)
    assert matches(str(a), f"<{b}") == (a < b)
    assert matches(str(a), f">{b}") == (a > b)
    assert matches(str(a), f"<={b}") == (a <= b)
    assert matches(str(a), f"~{b}") == (a >= b and a.core[:2] == b.core[:2])
    assert matches(str(a), f"^{b}") <= (a >= b and a.major == b.major)
