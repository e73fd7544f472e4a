"""URLs as the network will read them, and conditions on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from signoff import Call, Policy
from signoff.policy.url import read_url


@table(
    ("text", "host"),
    [
        ("https://Example.COM/x", "example.com"),
        ("https://example.com./x", "example.com"),
        ("http://good.example@evil.example/", "evil.example"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://exa\uff4dple.com/", "example.com"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://0177.0.0.1/", "127.0.0.1"),
        ("http://127.1/", "127.0.0.1"),
        ("http://[::ffff:10.0.0.1]/", "10.0.0.1"),
        ("http://[2001:DB8::1]/", "2001:db8::1"),
    ],
)
def test_the_host_is_the_one_that_would_be_reached(text: str, host: str) -> None:
    assert read_url(text).host == host


@table(
    "text",
    [
        "http://localhost/", "http://a.localhost/", "http://127.0.0.1/", "http://10.1.2.3/", "http://192.168.0.9/",
        "http://169.254.169.254/latest", "http://[::1]/", "http://[fe80::1]/", "http://[fc00::1]/", "http://0/",
        "http://printer/", "http://db.internal/", "http://224.0.0.1/", "http://0x0a000001/", "http://[::ffff:7f00:1]/",
        "http://localhost./", "http://a.test/", "http://a.example/", "http://vault.service.consul/", "http://x.docker/",
        "http://metadata/", "http://1.home.arpa/", "http://127\u30020\u30020\u30021/", "http://\u24db\u24deca\u24dbhost/",
        "http://example.com@10.0.0.1/", "http://10.0.0.1.nip.io/", "http://a.10-0-0-1.sslip.io/", "http://a.localtest.me/",
        "http://x.y.z/", "http://kubernetes.default/", "http://a.com1/",
    ],
)  # fmt: skip
def test_private_places(text: str) -> None:
    assert read_url(text).private


@table(
    "text",
    [
        "https://example.com/", "http://93.184.216.34/", "https://[2606:4700::1111]/", "https://b\xfccher.de/",
        "https://x.\u0440\u0444/", "https://www.bbc.co.uk/", "https://a.dev./", "https://x_y.museum/",
    ],
)  # fmt: skip
def test_public_places(text: str) -> None:
    url = read_url(text)

    assert not url.private
    assert not url.doubt


@table(
    "text",
    [
        "", "example.com", "https:///x", "https://user:pw@example.com/", "https://example.com\\@evil.example/",
        "https://exa mple.com/",
        "https://example.com/a/../b", "https://example.com/%2e%2e/x", "https://example.com/a%2fb",
        "https://%65xample.com/", "https://example.com:99999/", "https://256.1.1.1/", "https://1.2.3.4.5/",
        "https://ex\u200bample.com/", "https://[::1/",
        "java\tscript:alert(1)", "https://-bad-.example/", "https://" + "a" * 9000,
    ],
)  # fmt: skip
def test_what_two_readers_may_read_differently_is_in_doubt(text: str) -> None:
    assert read_url(text).doubt


@given(st.text(max_size=80) | st.text("htps:/@.[]%\\#?01289afx-_e\u3002\uff0e", max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    read_url(text)
    read_url(f"https://{text}")


FETCH = Policy.from_rules(
    [
        {"deny": {"url": {"private": True}}},
        {"allow": {"tool": "fetch", "url": {"matches": ["api.example.com", "https://*.example.org:8443/v1/**"]}}},
    ]
)


@table(
    ("url", "effect"),
    [
        ("https://api.example.com/x", "allow"),
        ("http://api.example.com/", "allow"),
        ("https://API.example.com:443/", "allow"),
        ("https://a.example.org:8443/v1/x/y", "allow"),
        ("https://api.example.com:8080/", "ask"),
        ("ftp://api.example.com/", "ask"),
        ("https://api.example.com.evil.com/", "ask"),
        ("https://api.example.com@evil.com/", "ask"),
        ("https://evil.com/?u=https://api.example.com/", "ask"),
        ("https://evil.com\\@api.example.com/", "ask"),
        ("https://a.example.org:8443/v1/../x", "ask"),
        ("https://example.org:8443/v1/x", "ask"),
        ("http://a.example.org:8443/v1/x", "ask"),
        ("http://169.254.169.254/", "deny"),
        ("http://0x7f.1/", "deny"),
        ("169.254.169.254/latest", "deny"),
    ],
)
def test_conditions(url: str, effect: str) -> None:
    assert FETCH.judge(Call(tool="fetch", args={"url": url})).effect == effect


def test_every_url_of_the_call_must_fit() -> None:
    call = Call(tool="fetch", args={"url": "https://api.example.com/", "callback_url": "https://evil.com/"})

    assert FETCH.judge(call).effect == "ask"


def test_a_rule_that_denies_finds_a_url_in_any_argument() -> None:
    call = Call(tool="note", args={"text": "see http://10.0.0.7/admin for more"})

    verdict = FETCH.judge(call)

    assert verdict.effect == "deny"
    assert "10.0.0.7" in verdict.reason


def test_a_method_that_is_not_said_is_in_doubt() -> None:
    policy = Policy.from_rules([{"allow": {"url": {"matches": "a.example", "method": ["GET", "head"]}}}])

    def effect(**args: str) -> str:
        return policy.judge(Call(tool="http", args={"url": "https://a.example/", **args})).effect

    assert effect(method="get") == "allow"
    assert effect(method="HEAD") == "allow"
    assert effect(method="POST") == "ask"
    assert effect() == "ask"


@pytest.mark.parametrize(
    "host",
    [
        "192.0.0.8", "192.0.0.9", "192.0.0.192", "192.88.99.1", "168.63.129.16", "[100:0:0:1::1]", "[2001:5::1]",
        "[3fff::1]",        "[5f00::1]", "[fec0::1]", "[4000::1]",
    ],
)  # fmt: skip
def test_every_network_for_special_purposes_is_private(host: str) -> None:
    assert read_url(f"http://{host}/").private


CURL = Policy.from_rules(
    [{"deny": {"url": {"private": True}}}, {"deny": {"url": {"matches": "*.evil.com"}}}, {"allow": "shell"}]
)


@table(
    "command",
    [
        "curl localhost", "curl localhost:8080/x", "curl -s 127.0.0.1/x", "curl db:80", "curl 169.254.169.254/latest",
        "curl '[::1]:80'", "curl 0x7f000001", "curl 2130706433", "curl metadata.google.internal/x", "wget x.evil.com/a",
        "ssh root@10.0.0.1", "nc 10.0.0.1 80", "curl http://db/x", "sh -c 'curl localhost'", "ls; curl ana@localhost",
    ],
)  # fmt: skip
def test_an_address_without_a_scheme_is_found_in_a_command(command: str) -> None:
    assert CURL.judge(Call(tool="shell", args={"command": command})).effect == "deny"


@table(
    "command",
    [
        "curl -o out.txt https://x.com", "curl -m 10.5 https://x.com", "curl -H 'A: b' -o x.sh https://x.com",
        "git push origin main", "echo localhost", "ls 127.0.0.1", "curl -sSL https://x.com/a.json",
    ],
)  # fmt: skip
def test_other_words_of_a_command_are_no_addresses(command: str) -> None:
    assert CURL.judge(Call(tool="shell", args={"command": command})).effect == "allow"
