"""Secrets are masked, targets are not, and what was masked comes back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matches import match
from tests.profiles import NIGHTLY, examples
from tests.tables import table

from signoff.broker.journal import Journal
from signoff.core.call import Call
from signoff.core.card import card_for, origin_of, safe_summary
from signoff.core.credential import secret_name, target_name
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.grant import grant_for
from signoff.core.people import Actor
from signoff.core.redact import Redacted, redact, redact_text, redacted_beginning, restore
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import RequestContext
from signoff.errors import CannotCanonicalise, EditRefused
from signoff.gate.run_saver import saved_result
from signoff.policy.grant_text import grant_line
from signoff.policy.match_result import in_one_line
from signoff.policy.sql.read import read_sql
from signoff.views.json_form import to_json
from signoff.views.request_view import RequestView

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "approval_flow.jsonl"

# Assembled, so that no scanner of repositories takes them for real.
A = "a1B2c3D4e5F6g7H8i9J0"
TOKENS = {
    "Anthropic key": "sk-ant-" + "api03-" + A * 2,
    "API key": "sk-" + "proj-" + A * 2,
    "GitHub token": "ghp_" + A * 2,
    "GitHub token, fine": "github_pat_" + A + "_" + A,
    "GitLab token": "glpat-" + A,
    "Slack token": "xoxb-" + "123456789012-" + A,
    "AWS key": "AKIA" + "ABCDEFGH12345678",
    "Google key": "AIza" + A + "abcdefghijklmno",
    "Stripe key": "sk_live_" + A,
    "npm": "npm_" + A * 2,
    "PyPI": "pypi-" + A * 3,
    "Hugging Face": "hf_" + A * 2,
    "SendGrid": "SG." + A + "." + A * 2,
    "Vault": "hvs." + A * 2,
    "JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + A,
    "Telegram": "123456789:" + "A" * 35,
}
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + f"{'A1b2' * 16}\n" * 5 + "A1b2\n-----END RSA PRIVATE KEY-----"

SECRET_NAMES = """password passwd PASSWORD dbPassword db_password user-password password2 newPassword secret
clientSecret client_secret CLIENT-SECRET token accessToken access_token refresh-token apiToken api_key apiKey APIKey
X-Api-Key apikey Authorization Proxy-Authorization cookie Set-Cookie private_key privateKey credential credentials
aws_secret_access_key access_key secretKey passphrase token_value secretBase64 passwordHash auth jwt otp cvv""".split()
PLAIN_NAMES = """max_tokens maxTokens token_count tokenCount total_tokens secret_name secretId author authority
tokenizer token_type monkey keyboard primary_key sort_key foreignKey cookie_domain password_policy key name content body
description""".split()
TARGET_NAMES = """path file_path filename url webhookUrl token_url password_file host hostname to cc recipient
recipients email user_email amount totalAmount price account iban channel secret_path branch""".split()


def shown(args: dict[str, Any], *secrets: str) -> str:
    return json.dumps(redact(args, secrets=secrets).args, ensure_ascii=False)


# --- by name ---


@table("name", SECRET_NAMES)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    redacted = redact({name: "hunter2"})
    assert "hunter2" not in json.dumps(redacted.args)
    (masked,) = redacted.masked
    assert masked.path == name
    assert "named like a secret" in masked.why
    assert redacted.args[name] == masked.placeholder


@table("name", PLAIN_NAMES)
def test_a_name_that_only_resembles_a_secret_is_not_one(name: str) -> None:
    assert secret_name(name) == ""
    assert redact({name: "hunter2"}) == Redacted(args={name: "hunter2"})


@table("name", TARGET_NAMES)
def test_a_target_is_never_masked_whole(name: str) -> None:
    assert target_name(name)
    for value in ("hunter2", TOKENS["GitHub token"], "/srv/" + TOKENS["GitHub token"], 42, [TOKENS["API key"]]):
        assert redact({name: value}).args == {name: value}


def test_everything_below_a_secret_is_masked_but_its_targets() -> None:
    args = {
        "credentials": {"host": "db.example.com", "login": ["ana"], "pw": "x1", "n": [{"deep": "x2"}], "port": 5432}
    }
    redacted = redact(args).args["credentials"]
    assert redacted["host"] == "db.example.com"
    assert redacted["port"] == 5432
    assert "x1" not in json.dumps(redacted)
    assert "x2" not in json.dumps(redacted)


def test_numbers_and_nothing() -> None:
    args = {"password": 123456, "otp": 77, "tokens": 512, "secret": None, "use_cookie": True, "passphrase": ""}
    redacted = redact(args).args
    assert redacted | {"password": 0, "otp": 0} == args | {"password": 0, "otp": 0}
    assert "123456" not in json.dumps(redacted)


def test_the_path_of_a_key_is_no_key() -> None:
    assert redact({"ssh_key": "~/.ssh/id_ed25519"}).args == {"ssh_key": "~/.ssh/id_ed25519"}


def test_a_url_under_a_secret_name_keeps_its_host() -> None:
    text = shown({"secret": f"https://ana:pw99@hooks.example.com/in/{A}"})
    assert "hooks.example.com" in text
    assert A not in text
    assert "pw99" not in text


def test_a_command_under_a_secret_name_is_pointed_out() -> None:
    (masked,) = redact({"env": {"TOKEN": "x; rm -rf ~"}}).masked
    assert "shell syntax" in masked.why
    assert masked.path == "env.TOKEN"


# --- by value ---


def test_a_declared_secret_is_masked_wherever_it_stands() -> None:
    secret = 'p"ss wörd/1'
    args = {
        "a": f"x{secret}y",
        "b": [{secret: 1}],
        "c": json.dumps(secret),
        "d": "p%22ss%20w%C3%B6rd%2F1",
        "path": secret,
    }
    text = shown(args, secret)
    for form in ("ss w", "ss%20w", "rd/1"):
        assert form not in text


def test_a_short_declared_secret_is_only_masked_alone() -> None:
    assert redact({"a": "1", "b": "11"}, secrets=["1"]).args["b"] == "11"
    assert redact({"a": "1"}, secrets=["1"]).args["a"] != "1"


def test_overlapping_secrets_leave_nothing() -> None:
    assert "abcdef" not in redact_text("xabcdefx", secrets=["abcd", "cdef"])
    assert redact_text("xabcdefx", secrets=["abcd", "cdef"]).count("⟦") == 1


# --- signoff's own ---

OWN = [f"{mark}_{A}-{A}_xY9" for mark in ("sot", "soi", "sol", "sos")]


@table("own", OWN)
def test_a_credential_of_signoff_is_masked_everywhere(own: str) -> None:
    args: dict[str, Any] = {
        "note": f"use {own}",
        "url": f"https://signoff.example/sign-in?link={own}",
        "endpoint": f"https://x.example/?next=https%3A%2F%2Fs.example%2Fsign-in%3Flink%3D{own}",
        "path": f"/tmp/{own}",
        "to": own,
        "command": f"curl -H 'Authorization: Bearer {own}' example.com",
        own: 1,
        f"x-{own}": {own: [own]},
    }
    redacted = redact(args)
    assert own not in json.dumps(redacted.args) and own not in str(redacted.masked)
    assert "https://signoff.example/sign-in?link=⟦" in redacted.args["url"]
    assert restore(redacted.args, args, redacted) == args
    request = ApprovalRequest(
        id="1", tool_call_id="1", tool_name=f"run_{own}", args=args, metadata={"summary": f"run {own}"},
        summary=f"run {own}", call=Call(tool=f"run_{own}", args=args),
        context=RequestContext(prompt=own, words=own, session=own, directory=f"/tmp/{own}"),
    )  # fmt: skip
    assert own not in str(origin_of(request))
    assert own not in str(card_for(request)) and own not in safe_summary(request)
    assert own not in str(card_for(request.changed_to(metadata={}, summary="")))
    assert own not in to_json(RequestView.of(request))
    for said in (None, match(to=own), {"args": {"to": {"in": [own]}}}):
        decision = ApprovalDecision(approved=True, remember=Remember.ALWAYS, by=Actor(name="ana"))
        grant = replace(grant_for(request, request.call or Call(tool=own), decision, "x"), match=said)
        told = grant_line(grant)
        assert own not in told and "⟦masked 1: signoff credential⟧" in told and "U+27" not in told
    shown = request.changed_to(title=safe_summary(request), deadline=NOON)
    for event in (
        Journal().passed("allowed", Call(tool=own, args=args), None, NOON, text=own),
        Journal().asked(shown, NOON, Journal().call_of(shown)),
    ):
        assert own not in str(event.body)


def test_a_name_with_a_credential_is_masked() -> None:
    assert TOKENS["GitHub token"] not in shown({TOKENS["GitHub token"]: 1, "a": {TOKENS["AWS key"]: {}}})


# --- by shape ---


@table("kind", TOKENS)
@table("around", ["{}", "curl -H 'X: {}' https://api.example.com; rm -rf x", "a={}\nb", '{{"k": "{}"}}'])
def test_a_credential_is_known_by_its_shape(kind: str, around: str) -> None:
    text = redact_text(around.format(TOKENS[kind]))
    assert TOKENS[kind] not in text
    assert text.count("⟦masked") == 1
    before, after = around.format("\0").split("\0")
    assert text.startswith(before)
    assert text.endswith(after)


@table(
    ("text", "secret", "kept"),
    [
        ('curl -H "Authorization: Bearer abc123def456" https://api', "abc123def456", '" https://api'),
        ("curl -H 'Authorization: Basic dXNlcjpw' https://api", "dXNlcjpw", "https://api"),
        ("https://user:pa@ss@host.example/x", "pa@ss", "@host.example/x"),
        ("git clone https://x-access-token:abc@github.com/a/b", ":abc@", "github.com/a/b"),
        ("git clone x-access-token:abcd1234@github.com:a/b", "abcd1234", "@github.com:a/b"),
        ("postgresql://app:hunter2@db:5432/prod", "hunter2", "@db:5432/prod"),
        ("https://x/y?access_token=abcd1234&page=2", "abcd1234", "&page=2"),
        ("PASSWORD=hunter2 ./run && ls", "hunter2", " ./run && ls"),
        ("./run --api-key abcd1234 --path /tmp/x", "abcd1234", " --path /tmp/x"),
        ("./run --password=hunter2; rm -rf x", "hunter2", "; rm -rf x"),
        ("curl -u ana:hunter2 https://x", "hunter2", " https://x"),
        ('{"password": "hunter2", "host": "db"}', "hunter2", '", "host": "db"}'),
        ("Cookie: sid=abc123; csrf=def456; rm -rf x", "def456", "; rm -rf x"),
        ("https://hooks.slack.com/services/T0000/B0000/abcdefgh1234", "abcdefgh1234", ""),
        (f"echo '{PEM}' > key", "A1b2A1b2", "' > key"),
        (PEM.replace("\n", "\\n"), "A1b2A1b2", ""),
    ],
)
def test_only_the_secret_part_is_masked(text: str, secret: str, kept: str) -> None:
    masked = redact_text(text)
    assert secret not in masked
    assert masked.endswith(kept)
    assert masked[0] == text[0] or text.startswith("-----BEGIN")


@table(
    "text",
    [
        'curl -H "X: sk-aaaa; rm -rf ~"',
        "the secret: patience, and a token of love",
        "docker run -u 1000:1000 image",
        "class sk-loading-spinner-wrapper-large",
        "bearer certificates are fine",
        "export PATH=/usr/bin:/bin TOKEN_COUNT=5 token=$TOKEN",
        "see https://example.com/a:b@c and user@example.com",
        "secret_manager_service_account_email_address",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == text


@table("danger", ["; rm -rf ~", "\nrm -rf ~\n", " | sh", " && rm x", "$(rm x)", "`rm x`", " > /etc/x"])
@table("secret", [*TOKENS.values(), "Bearer abc123def", "PASSWORD=hunter2", "https://a:b1c2@h"])
def test_a_mask_never_hides_a_command(secret: str, danger: str) -> None:
    assert danger in redact_text(f"{secret}{danger}")


def test_a_command_inside_a_key_stays_in_sight() -> None:
    text = "-----BEGIN PRIVATE KEY-----\nrm -rf ~\n-----END PRIVATE KEY-----"
    assert "rm -rf ~" in redact_text(text)


# --- texts that are cut ---


@pytest.mark.parametrize("secret", ['plain "words" of some length', TOKENS["GitHub token"], PEM])
def test_half_a_secret_is_not_left_where_a_text_is_cut(secret: str) -> None:
    for told in (secret, json.dumps(secret)):
        shown = {
            redacted_beginning(f"{'x ' * 20}{told} {'y' * 80}", longest=size, secrets=[secret]) for size in range(80)
        }
        assert not [one for one in shown if any(begin in one for begin in ("plain", "ghp_", "-----BEGIN"))]
        assert all(one.endswith(" characters)") for one in shown), "and no half of a mask"
        assert not [one for one in shown if one.count("⟦") != one.count("⟧")]


def test_a_text_that_is_short_enough_is_whole() -> None:
    assert redacted_beginning("hunter2-hunter2", longest=15, secrets=["hunter2"]).count("⟧-⟦") == 1


def test_a_tools_result_is_cut_so_that_it_is_seen() -> None:
    for value in ("x" * 150_000, {"a": "x" * 150_000}):
        assert saved_result(value).preview.endswith("x…") and len(saved_result(value).preview) == 100_000


def test_a_reason_that_quotes_half_a_secret_shows_nothing_of_it() -> None:
    secret = "hunter2hunter2hunter2"
    facts = read_sql(f"{'a' * 25}{secret} from x")
    for reason in (in_one_line(ValueError("x" * 185 + secret)), facts.opaque, f"`{facts.opaque_word}`"):
        assert "hunter2hun" in reason
        assert "hunter" not in redact_text(f"{reason}, so it is asked about", secrets=[secret])


# --- below the name of a secret ---


def test_the_shape_below_the_name_of_a_secret_stays_readable_and_the_card_says_what_is_masked() -> None:
    args: dict[str, Any] = {
        "credentials": [
            {"username": "ana", "password": "s1", "scopes": ["s2", 7, True, None], "host": "db.example.com"},
            {"kind": {"type": "s3"}, "empty": "", "none": [], "path": "/etc/key"},
        ]
    }
    redacted = redact(args)
    first, second = redacted.args["credentials"]
    assert list(first) == ["username", "password", "scopes", "host"] and list(second) == list(args["credentials"][1])
    assert (first["username"], first["host"], second["path"]) == ("ana", "db.example.com", "/etc/key")
    assert first["scopes"][2:] == [True, None] and (second["empty"], second["none"]) == ("", [])
    assert [one.path for one in redacted.masked] == [
        "credentials[0].password", "credentials[0].scopes[0]", "credentials[0].scopes[1]", "credentials[1].kind.type",
    ]  # fmt: skip
    card = card_for(
        ApprovalRequest(id="1", tool_call_id="1", tool_name="run", args=args, call=Call(tool="run", args=args))
    )
    assert card.args[0].masked and len(card.masked) == 4
    assert card.masked[0].startswith("credentials[0].password: named like a secret")
    assert restore(redacted.args, args, redacted) == args


# --- masks ---


def test_every_mask_has_its_own_text() -> None:
    redacted = redact({"a": [f"{TOKENS['GitHub token']} {TOKENS['GitHub token']}"], "token": "x", "password": "x"})
    placeholders = [masked.placeholder for masked in redacted.masked]
    assert len(placeholders) == len(set(placeholders)) == 4


def test_a_mask_cannot_be_imitated() -> None:
    args = {"note": "⟦masked 1: token⟧", "token": "s"}
    redacted = redact(args)
    assert redacted.args["note"] == args["note"]
    assert redacted.args["token"] != args["note"]
    assert restore(redacted.args, args, redacted) == args


def test_masks_do_not_tell_the_secret() -> None:
    redacted = redact({"password": "hunter2", "a": f"x {TOKENS['API key']}"}, secrets=["zzzz"])
    assert "hunter2" not in repr(redacted)
    assert A not in repr(redacted)


def test_what_is_too_deep_to_show_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(2000):
        deep = {"a": deep}
    with pytest.raises(CannotCanonicalise):
        redact(deep)


# --- putting back ---

keys = st.sampled_from(["password", "path", "a", "b", "token", "headers", "s3cret"]) | st.text(max_size=3)
strings = st.text(max_size=8) | st.sampled_from(
    ["s3cret", "xs3crety", *TOKENS.values(), "https://a:b@c/d", "⟦masked 1: a⟧"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@examples(1_000, daily=25)
@given(st.dictionaries(keys, values, max_size=5))
def test_untouched_masks_give_the_original_back(args: dict[str, Any]) -> None:
    redacted = redact(args, secrets=["s3cret"])
    assert restore(json.loads(json.dumps(redacted.args)), args, redacted) == args


@examples(1_000, daily=25)
@given(st.dictionaries(keys, values, max_size=5))
def test_no_declared_secret_survives(args: dict[str, Any]) -> None:
    assert "s3cret" not in json.dumps(redact(args, secrets=["s3cret"]).args)


ORIGINAL = {"command": f"curl -H 'Authorization: Bearer {A}' https://old", "password": "hunter2", "list": [1, 2]}
SHOWN = redact(ORIGINAL)


def test_the_text_around_a_mask_may_change() -> None:
    edited = SHOWN.args | {"command": SHOWN.args["command"].replace("old", "new"), "list": [3]}
    assert restore(edited, ORIGINAL, SHOWN) == ORIGINAL | {
        "command": ORIGINAL["command"].replace("old", "new"),
        "list": [3],
    }


def test_a_masked_value_may_be_replaced_or_removed() -> None:
    assert restore(SHOWN.args | {"password": "new"}, ORIGINAL, SHOWN)["password"] == "new"
    without = {name: value for name, value in SHOWN.args.items() if name != "password"}
    assert "password" not in restore(without, ORIGINAL, SHOWN)


MASK = SHOWN.args["password"]


@table(
    "change",
    [
        {"list": [MASK]},
        {"password": "", "note": MASK},
        {"note": MASK},
        {"password": f"{MASK}x"},
        {"password": f"{MASK}{MASK}"},
        {"password": MASK.replace("masked", "mask")},
        {"password": MASK[1:]},
        {"password": MASK[:-1]},
        {"password": MASK[1:-1]},
        {"command": SHOWN.args["command"].replace("⟧", "")},
        {"command": SHOWN.args["command"] * 2},
        {"password": "new", MASK: 1},
        {"note": "⟦masked 9: token⟧"},
    ],
)
def test_a_moved_or_changed_mask_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(EditRefused) as refused:
        restore({**SHOWN.args, **change}, ORIGINAL, SHOWN)
    assert "hunter2" not in str(refused.value)
    assert A not in str(refused.value)


@pytest.mark.parametrize("shortest", ["sk-ant-" + "a1" * 4, "xoxb-" + "a1" * 5, "whsec_" + "a1" * 5])
def test_the_shortest_of_their_kind_are_found(shortest: str) -> None:
    assert shortest not in redact_text(f"use {shortest} here")
    assert shortest not in redact_text(shortest)


# --- time ---


PIECES = ("A", "eyJ", "a://b:", "password=", "password: ", "sk-", "-----BEGIN PRIVATE KEY-----\n", "Bearer ", " ")
PIECES += (
    "a=b; ",
    "Authorization: ",
    "cookie:a=b; ",
    "--token ",
    "M" * 25 + ".",
    "\n+" + "A" * 30,
    "user:@",
    "-u a:b ",
)


@pytest.mark.nightly
@table("piece", PIECES)
def test_large_texts_take_no_time(piece: str) -> None:
    big = piece * ((300_000 if NIGHTLY else 100_000) // len(piece))
    start = thread_time()
    redact_text(big, secrets=["aaaa", "a=b"])
    assert thread_time() - start < 5


def test_the_known_payloads() -> None:
    if not CORPUS.exists():
        pytest.skip("the corpus of secrets in texts is not here")
    rows = {row["id"]: row for row in map(json.loads, CORPUS.read_text("utf-8").splitlines())}
    assert "eyJhbGciOi" not in redact_text(rows["secrets-bearer"]["payload"])
    assert redact_text(rows["secrets-bearer"]["payload"]).endswith('" https://api')
    assert "; rm -rf ~" in redact_text(rows["secrets-mask-hides-danger"]["payload"])
    assert redact_text(rows["secrets-url-userinfo"]["payload"]).endswith("@host/x")
    assert ":pass@" not in redact_text(rows["secrets-url-userinfo"]["payload"])
