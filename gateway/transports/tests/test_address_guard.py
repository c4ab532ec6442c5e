"""URLs that may be registered and addresses that may be dialled."""

import asyncio
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.networks import LOOPBACK_NETWORKS, Network, parse_network
from gateway.transports.address_guard import (
    GRPC_SCHEMES,
    HTTP_SCHEMES,
    AddressGuard,
    AddressRefused,
    Scheme,
    Target,
    parse_component_url,
    resolve_by_system,
)


def http(url: str) -> Target:
    return parse_component_url(url, HTTP_SCHEMES)


def names(*addresses: str) -> AddressGuard:
    """A guard for loopback whose resolver says that every name has these addresses."""

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return addresses

    return AddressGuard(LOOPBACK_NETWORKS, resolve=resolve)


def dialled(guard: AddressGuard, host: str) -> tuple[str, ...]:
    return asyncio.run(guard.addresses(Target(scheme=Scheme.HTTP, host=host, port=80)))


def allowing(*networks: str) -> AddressGuard:
    parsed: list[Network] = [parse_network(text) for text in networks]
    return AddressGuard(parsed)


def test_a_url_is_taken_apart_and_put_together_in_one_form() -> None:
    target = http("http://LocalHost:8080/a/b/")
    assert target == Target(scheme=Scheme.HTTP, host="localhost", port=8080, base="/a/b")
    assert target.url == "http://localhost:8080/a/b"
    assert http("https://[::1]:443").authority == "[::1]:443"
    assert parse_component_url("grpcs://a.b:1", GRPC_SCHEMES).is_tls


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://user:pw@localhost:80", "credential"),
        ("http://localhost:80/#x", "fragment"),
        ("http://localhost:80/?q=1", "query"),
        ("http://localhost:80?", "query"),
        ("http://localhost", "port"),
        ("http://localhost:0", "port"),
        ("http://localhost:99999", "out of range"),
        ("http://localhost:8x", "write http://host:port"),
        ("ftp://localhost:80", "begins with 'ftp'"),
        ("localhost:80", "write http://host:port"),
        ("http://:80", "host name"),
        ("http://0x7f.1:80", "four decimal numbers"),
        ("http://2130706433:80", "four decimal numbers"),
        ("http://127.1:80", "four decimal numbers"),
        ("http://0177.0.0.1:80", "four decimal numbers"),
        ("http://127.0.0.0x1:80", "four decimal numbers"),
        ("http://[fe80::1%25eth0]:80", "IPv6"),
        ("http://[::zz]:80", "write http"),
        ("http://local host:80", "characters"),
        ("http://localhost:80/a\r\nx: y", "characters"),
        ("http://localhost:80/a/../b", "'..'"),
        ("http://localhost:80//b", "empty"),
        ("http://ex_ample-.org:80", "host name"),
        ("http://bücher.example:80", "characters"),
    ],
)
def test_an_odd_url_is_refused_with_what_to_write(url: str, says: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        http(url)
    assert says in str(refused.value)


def test_a_grpc_url_has_no_path() -> None:
    with pytest.raises(AddressRefused, match="no path"):
        parse_component_url("grpc://localhost:1/base", GRPC_SCHEMES)


@given(st.text(max_size=40))
def test_any_text_is_either_taken_apart_or_refused(text: str) -> None:
    try:
        target = http("http://" + text)
    except AddressRefused:
        return
    assert http(target.url) == target


@given(st.ip_addresses(v=4))
def test_every_ipv4_address_hidden_in_ipv6_is_seen_as_what_it_is(
    address: ipaddress.IPv4Address,
) -> None:
    target = http(f"http://[::ffff:{address}]:80")
    assert target.host == str(address)


def test_a_literal_address_is_dialled_as_it_is() -> None:
    assert dialled(names(), "127.0.0.1") == ("127.0.0.1",)
    assert dialled(names(), "::1") == ("::1",)


def test_a_refused_address_is_named_once() -> None:
    with pytest.raises(AddressRefused, match=r"^8\.8\.8\.8 is in no network of outbound\.allow"):
        dialled(names(), "8.8.8.8")


def test_one_foreign_address_refuses_the_whole_name() -> None:
    with pytest.raises(AddressRefused, match=r"^half\.example \(10\.0\.0\.1\) is in no network"):
        dialled(names("127.0.0.1", "10.0.0.1"), "half.example")


def test_a_mapped_address_from_the_resolver_is_judged_and_dialled_as_ipv4() -> None:
    assert dialled(names("::ffff:127.0.0.1"), "mapped.example") == ("127.0.0.1",)
    with pytest.raises(AddressRefused):
        dialled(names("::ffff:10.0.0.1"), "mapped.example")


def test_a_name_is_checked_again_at_every_resolution() -> None:
    answers = iter([("127.0.0.1",), ("169.254.169.254",)])

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return next(answers)

    guard = AddressGuard(LOOPBACK_NETWORKS, resolve=resolve)
    assert dialled(guard, "rebinding.example") == ("127.0.0.1",)
    with pytest.raises(AddressRefused):
        dialled(guard, "rebinding.example")


METADATA_SERVICES = [
    "169.254.169.254",
    "169.254.170.23",
    "168.63.129.16",
    "192.0.0.192",
    "100.100.100.200",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "::a9fe:a9fe",
    "::ffff:a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::1",
]


@pytest.mark.parametrize("host", METADATA_SERVICES)
def test_metadata_services_are_refused_by_a_wide_network(host: str) -> None:
    with pytest.raises(AddressRefused, match="metadata"):
        dialled(allowing("0.0.0.0/0", "::/0"), host)


def test_a_metadata_service_named_by_its_very_address_is_allowed() -> None:
    assert dialled(allowing("169.254.169.254"), "169.254.169.254") == ("169.254.169.254",)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "224.0.0.1", "ff02::1"])
def test_an_address_of_no_machine_is_refused(host: str) -> None:
    with pytest.raises(AddressRefused, match="not the address of a machine"):
        dialled(allowing("0.0.0.0/0", "::/0"), host)


def test_an_empty_allow_list_refuses_everything() -> None:
    with pytest.raises(AddressRefused, match="empty"):
        dialled(AddressGuard(()), "127.0.0.1")


def test_a_name_with_too_many_addresses_is_refused() -> None:
    with pytest.raises(AddressRefused, match="each instance"):
        dialled(names(*(f"127.0.0.{n}" for n in range(1, 40))), "many.example")


def test_a_name_without_address_does_not_resolve() -> None:
    with pytest.raises(OSError, match="no address"):
        dialled(names(), "none.example")


def test_the_system_resolves_localhost_to_loopback() -> None:
    found = asyncio.run(resolve_by_system("localhost", 80))
    assert found
    assert all(ipaddress.ip_address(text).is_loopback for text in found)
