"""The outbound allow-list's arithmetic."""

import pytest

from gateway.config.networks import LOOPBACK_NETWORKS, is_allowed, parse_network


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_loopback_is_allowed_by_the_loopback_networks(address: str) -> None:
    assert is_allowed(address, LOOPBACK_NETWORKS)


@pytest.mark.parametrize("address", ["169.254.169.254", "10.0.0.1", "::ffff:10.0.0.1", "x", ""])
def test_everything_else_is_not(address: str) -> None:
    assert not is_allowed(address, LOOPBACK_NETWORKS)


def test_an_address_without_prefix_is_a_network_of_one() -> None:
    networks = (parse_network("10.0.0.7"),)
    assert is_allowed("10.0.0.7", networks)
    assert not is_allowed("10.0.0.8", networks)


def test_an_empty_list_allows_nothing() -> None:
    assert not is_allowed("127.0.0.1", ())


def test_a_network_with_host_bits_is_refused_because_it_is_probably_a_slip() -> None:
    with pytest.raises(ValueError, match="write a network such as"):
        parse_network("10.0.0.7/8")
