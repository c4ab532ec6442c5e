"""Versions are read as SPEC section 1 says; unknown enum values have a careful reading."""

import pytest

from acp_spec.bindings.fields import READS_AS, SUPPORTED_VERSIONS, VERSION, is_supported


@pytest.mark.parametrize("version", ["", "1.0", "1.7", "1"])
def test_a_version_of_the_same_major_is_answered(version: str) -> None:
    assert is_supported(version)


@pytest.mark.parametrize("version", ["2.0", "0.9", "x", "11.0"])
def test_an_unknown_major_is_not(version: str) -> None:
    assert not is_supported(version)


def test_what_is_spoken_is_supported() -> None:
    assert VERSION in SUPPORTED_VERSIONS


def test_an_unknown_value_reads_as_one_of_its_own_enum() -> None:
    assert all(isinstance(value, enum_type) for enum_type, value in READS_AS.items())
