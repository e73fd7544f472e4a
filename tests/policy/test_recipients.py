"""Rules on recipients: addresses are read out of whatever holds them, and nothing else is."""

from __future__ import annotations

from email.headerregistry import Address as Written
from email.utils import getaddresses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.tables import table

from signoff import Call, Policy
from signoff.core.verdict import Effect
from signoff.errors import PolicyError
from signoff.policy.addresses import read_recipients

RULES = [
    {"deny": {"tool": "send", "recipients": "evil.example"}},
    {"allow": {"tool": "send", "recipients": {"domains": ["acme.com", "*.lab.acme.com"]}}},
]


def judge(rules: list[dict[str, Any]], **args: Any) -> Effect:
    return Policy.from_rules(rules).judge(Call(tool="send", args=args)).effect


@pytest.mark.parametrize(
    "args",
    [
        {"x": {"b@evil.example": 1}},
        {"b@evil.example": "hello"},
        {"data": {"list": {"b@evil.example": True}}},
        {"to": {"b@evil.example": 1}},
    ],
)
def test_an_address_that_is_a_key_is_a_recipient(args: dict[str, Any]) -> None:
    assert judge([RULES[0], {"allow": "send"}], **args) is Effect.DENY


@table(
    "to",
    [
        "ana@acme.com", "Ana@ACME.com", "ana@acme.com.", " ana@acme.com ", "mailto:ana@acme.com",
        "Ana Berg <ana@acme.com>",
        '"Berg, Ana" <ana@acme.com>', "ana@acme.com, ben@acme.com", "ana@acme.com; Ben <ben@x.lab.acme.com>",
        ["ana@acme.com", "Ben <ben@acme.com>"], {"email": "ana@acme.com", "name": "Ana"}, [{"address": "ana@acme.com"}],
        "ana+news@acme.com", "a.b-c_d@acme.com", "o'neil@acme.com",
    ],
)  # fmt: skip
def test_colleagues_in_any_form_are_allowed(to: Any) -> None:
    assert judge(RULES, to=to) is Effect.ALLOW


@table(
    "to",
    [
        "x@evil.example", "x@EVIL.example", "x@evil.example.", "Ana <x@evil.example>", "x@evil.example, ana@acme.com",
        "ana@acme.com, x@evil.example", "ana@acme.com;x@evil.example", ["ana@acme.com", "x@evil.example"],
        [{"email": "x@evil.example"}], '"ana@acme.com" <x@evil.example>', "ana@acme.com <x@evil.example>",
        "ana@acme.com\nBcc: x@evil.example", "ana@acme.com x@evil.example", "(hi) x@evil.example", "x: x@evil.example;",
        "<x@evil.example>", "x@evil.example (ana@acme.com)",
    ],
)  # fmt: skip
def test_whom_a_rule_denies_is_found_in_any_form(to: Any) -> None:
    assert judge(RULES, to=to) is Effect.DENY
    assert judge(RULES, to="ana@acme.com", cc=to) is Effect.DENY
    assert judge(RULES, message={"to": "ana@acme.com", "bcc": to}) is Effect.DENY


@table(
    "to",
    [
        "x@other.example", "ana@acme.com, x@other.example", ["ana@acme.com", "x@other.example"],
        "ana@acme.com@evil.example",
        "ana@evil.example.acme.com", "ana@аcme.com", "ana%evil.example@acme.com", "evil.example!ana@acme.com",
        '"x@evil.example"@acme.com',
        "ana@[10.0.0.1]", "ana@acme", "ana", "", [], None, 5, {"name": "Ana"}, "ana@acme.com\u200b",
        "ana＠acme.com",
        "ana@lab.acme.com", "Ana <ana@acme.com", "ana@acme.com > b@acme.com", "ana @acme.com",
        "ana@acme.com, everybody",
    ],
)  # fmt: skip
def test_what_is_not_sure_is_asked_about(to: Any) -> None:
    assert judge(RULES[1:], to=to) is Effect.ASK


def test_every_argument_that_names_recipients_counts() -> None:
    assert judge(RULES, to="ana@acme.com", cc=["ben@acme.com"], subject="x@other.example") is Effect.ALLOW
    assert judge(RULES, to="ana@acme.com", cc=["x@other.example"]) is Effect.ASK
    assert judge(RULES, to="ana@acme.com", bcc="x@other.example") is Effect.ASK
    assert judge(RULES, to="ana@acme.com", reply_to="x@other.example") is Effect.ALLOW
    assert judge(RULES, subject="hello") is Effect.ASK, "nobody is named"


@table(
    ("condition", "to", "holds"),
    [
        ({"outside": "acme.com"}, "ana@acme.com", False),
        ({"outside": "acme.com"}, ["ana@acme.com", "x@other.example"], True),
        ({"any": "boss@*"}, ["ana@acme.com", "Boss@other.example"], True),
        ({"any": "boss@acme.com"}, ["ana@acme.com"], False),
        ({"all": "*@acme.com"}, ["ana@acme.com", "ben@acme.com"], True),
        ({"all": "*@acme.com"}, ["ana@acme.com", "x@other.example"], False),
        ({"none": "*@acme.com"}, ["x@other.example"], True),
        ({"none": "*@acme.com"}, ["ana@acme.com"], False),
        ({"count": {">": 1}}, "ana@acme.com, ben@acme.com", True),
        ({"count": {">": 1}}, "ana@acme.com, Ana@acme.com", False),
        ({"count": 1, "domains": "acme.com"}, "ana@acme.com", True),
        ({"domains": "acme.com", "arg": "guests"}, "ana@acme.com", False),
    ],
)
def test_what_a_rule_that_denies_may_say(condition: dict[str, Any], to: Any, holds: bool) -> None:
    rules = [{"deny": {"tool": "send", "recipients": condition}}, {"allow": "send"}]
    assert judge(rules, to=to) is (Effect.DENY if holds else Effect.ALLOW)


def test_what_cannot_be_read_is_in_doubt_unless_enough_is_read() -> None:
    def denies(condition: dict[str, Any], to: str) -> Effect:
        return judge([{"deny": {"recipients": condition}}, {"allow": "send"}], to=to)

    assert denies({"any": "x@evil.example"}, "to x@evil.example, please") is Effect.DENY
    assert denies({"any": "x@evil.example"}, "to y@evil.example, please") is Effect.ASK
    assert denies({"none": "x@evil.example"}, "to y@evil.example, please") is Effect.ASK
    assert denies({"any": "x@evil.example"}, "/tmp/file") is Effect.ALLOW, "a tool that moves files has a `to` as well"


@table(
    ("rule", "said"),
    [
        ({"allow": {"recipients": {"any": "acme.com"}}}, "`any` makes no sense where a rule allows"),
        ({"allow": {"recipients": {"outside": "acme.com"}}}, "`outside` makes no sense where a rule allows"),
        ({"deny": {"recipients": "acme"}}, "bad address `acme`"),
        ({"deny": {"recipients": "*.*"}}, r"bad address `\*\.\*`"),
        ({"deny": {"recipients": "a b@acme.com/x"}}, "bad address"),
        ({"deny": {"recipients": {"count": {"<": -1}}}}, "whole number"),
        ({"deny": {"recipients": {"count": True}}}, "whole number"),
        ({"deny": {"recipients": {"arg": "to"}}}, "requires nothing"),
        ({"deny": {"recipients": {"domain": "acme.com"}}}, "domains"),
    ],
)
def test_a_bad_condition_says_so(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        Policy.from_rules([rule])


def test_a_pattern_for_addresses_is_warned_about_where_a_rule_allows() -> None:
    def kinds(rule: dict[str, Any]) -> list[str]:
        return [one.kind for one in Policy.from_rules([rule]).warnings]

    assert kinds({"allow": {"tool": "send", "args": {"to": {"matches": "*@acme.com"}}}}) == ["address"]
    assert kinds({"allow": {"tool": "send", "args": {"to": {"all": {"matches": "*@acme.com"}}}}}) == ["address"]
    assert kinds({"ask": {"tool": "send", "args": {"to": {"matches": "*@acme.com"}}}}) == []
    assert kinds({"allow": {"tool": "send", "args": {"to": {"matches": "ana@acme.com"}}}}) == []
    assert kinds({"allow": {"tool": "send", "recipients": "acme.com"}}) == []


NAMES = st.text(st.characters(codec="ascii", exclude_characters='"\\\r\n@', exclude_categories=["Cc"]), max_size=12)
MAILBOX = st.builds(
    lambda name, local, domain: (str(Written(name, username=local, domain=domain)), f"{local}@{domain}"),
    NAMES,
    st.from_regex(r"[a-z0-9]{1,6}(\.[a-z0-9+]{1,4})?", fullmatch=True),
    st.sampled_from(("acme.com", "evil.example", "mail.acme.com")),
)


@examples(5_000, daily=50)
@given(st.lists(MAILBOX, min_size=1, max_size=4))
def test_what_a_mail_library_writes_is_read_or_in_doubt(boxes: list[tuple[str, str]]) -> None:
    taken = read_recipients(", ".join(written for written, _ in boxes))
    meant = {address for _, address in boxes}
    assert meant <= {one.text for one in taken.found}, "nobody is overlooked"
    if not taken.doubt:
        assert {one.text for one in taken.found} == meant


@examples(20_000)
@given(st.text(st.sampled_from('abx.@@,;<>"\\ ():\n\t%!'), max_size=24).map(lambda text: text.replace("x", "acme.com")))
def test_whoever_a_mail_library_finds_is_found_or_in_doubt(text: str) -> None:
    taken = read_recipients(text)
    if taken.doubt:
        return
    theirs = {address.lower().rstrip(".") for _, address in getaddresses([text]) if "@" in address}
    assert theirs == {one.text for one in taken.found}


@table(
    "args",
    [
        {"CC": "x@other.example"}, {"cc_list": ["x@other.example"]}, {"ccs": ["x@other.example"]},
        {"bcc_address": "x@other.example"}, {"BccAddresses": ["x@other.example"]}, {"to_addrs": ["x@other.example"]},
        {"to2": "x@other.example"}, {"cc_1": "x@other.example"}, {"watchers": ["x@other.example"]},
        {"forward": "x@other.example"}, {"messages": [{"to": "x@other.example"}]},
        {"personalizations": [{"bcc": [{"email": "x@other.example"}]}]}, {"extra": [["bcc", "x@other.example"]]},
        {"headers": "Subject: x\nBcc: x@other.example"}, {"raw_message": "To: x@other.example\n\nhi"},
        {"options": {"copies": {"carbon": "x@other.example"}}},
    ],
)  # fmt: skip
def test_recipients_under_other_names_count(args: dict[str, Any]) -> None:
    assert judge(RULES, to="ana@acme.com", **args) is Effect.ASK
    evil = [{"deny": {"tool": "send", "recipients": "other.example"}}, {"allow": "send"}]
    assert judge(evil, to="ana@acme.com", **args) is Effect.DENY


@table(
    "args",
    [
        {"from": "x@other.example"}, {"sender_email": "x@acme.com"}, {"reply_to": "x@other.example"},
        {"body": "x@other.example"}, {"body": "To: x@other.example\nhi"}, {"note": "see x@other.example"},
        {"attachments": [{"name": "a.txt"}]}, {"headers": {"X-Tag": "a"}},
    ],
)  # fmt: skip
def test_who_writes_and_what_is_written_are_no_recipients(args: dict[str, Any]) -> None:
    assert judge(RULES, to="ana@acme.com", **args) is Effect.ALLOW


@table(
    "to",
    [
        "ana@acme.com#.other.example", "ana@acme.com?cc=x", "mailto:ana@acme.com?bcc=x\uff20other.example",
        "mailto:ana@acme.com?bcc=x%40other.example", "=?utf-8?q?x=40other.example=2C?= <ana@acme.com>",
        '"=?utf-8?q?x=40other.example=2C?=" <ana@acme.com>', "-X@acme.com",
        {"email": "ana@acme.com", "bcc": "x@other.example"}, {"email": "ana@acme.com", "name": "x@other.example"},
        [{"address": "ana@acme.com", "also": ["x@other.example"]}], {"email": "ana@acme.com", "x@other.example": "Bob"},
    ],
)  # fmt: skip
def test_what_some_readers_read_otherwise_is_not_allowed(to: Any) -> None:
    assert judge(RULES, to=to) is Effect.ASK


@pytest.mark.parametrize(
    "to", ["x%40evil.example", "mailto:x%40evil.example", "=?utf-8?q?x=40evil=2Eexample?=", "x&#64;evil.example"]
)
def test_an_address_in_another_spelling_is_in_doubt(to: str) -> None:
    assert judge([{"deny": {"recipients": "evil.example"}}, {"allow": "send"}], to=to) is Effect.ASK


def test_a_name_that_is_the_address_again_is_no_matter() -> None:
    assert judge(RULES, to={"email": "ana@acme.com", "name": "ana@acme.com"}) is Effect.ALLOW
