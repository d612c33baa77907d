"""Tests of ``openenv_gym_server.addresses``."""

from __future__ import annotations

import pytest

from openenv_gym_server.addresses import Address, address_of, canonical_host, canonical_origin


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Example.COM.", Address("example.com")),
        ("example.com:80", Address("example.com")),
        ("example.com:8000", Address("example.com", 8000)),
        ("[::1]:8000", Address("::1", 8000)),
        ("[::1]", Address("::1")),
        ("", None),
        (":80", None),
        ("a:port", None),
        ("[bad", None),
        ("a/b", None),
        ("user@a", None),
        ("a?b", None),
        ("a#b", None),
    ],
)
def test_an_address_is_read_in_one_form(text: str, address: Address | None) -> None:
    assert address_of(text) == address


def test_the_default_port_is_the_schemes_own() -> None:
    assert address_of("a:443", "https") == Address("a")
    assert address_of("a:443", "http") == Address("a", 443)


@pytest.mark.parametrize(
    ("name", "rebindable"),
    [
        ("evil.example", True),
        ("localhost", False),
        ("app.localhost", False),
        ("::ffff:127.0.0.1", False),
        ("10.0.0.5", False),
        ("fd00::1", False),
        ("gpu-box", False),
    ],
)
def test_only_a_name_of_the_public_registry_can_be_rebound(name: str, rebindable: bool) -> None:
    assert Address(name).can_be_rebound is rebindable


@pytest.mark.parametrize(
    ("given", "canonical"),
    [("My.Host.", "my.host"), (" My.Host:8000", "my.host:8000"), ("a:PORT", "a:port"), ("", ""), ("[::1]:5", "::1:5")],
)
def test_a_host_is_compared_in_one_form(given: str, canonical: str) -> None:
    assert canonical_host(given) == canonical


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("HTTPS://Page.Example:443/", "https://page.example"),
        ("http://page.example.:8000", "http://page.example:8000"),
        ("http://[::1]:80", "http://[::1]"),
        ("NULL", "null"),
        ("https://", "https://"),
    ],
)
def test_an_origin_is_compared_in_one_form(given: str, canonical: str) -> None:
    assert canonical_origin(given) == canonical
