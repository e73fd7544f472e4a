"""jq filters: what passes shows nothing but its input, and whatever reaches the environment is asked about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.shell.languages.scratch import Scratch
from tests.profiles import NIGHTLY, examples
from tests.tables import table

from signoff.policy.shell.languages import LIMIT, check_jq

HARMLESS = r"""
.
.env
.env.K
.["env"]
..|.env?
"env"
"$ENV \(.a[0])"
{env}
{env, a}
{a, env: 1}
{env: .a, b: 2, c}
{"env": 1}
. as {env: $x} | $x
[.a[] | select(. > 1)] | add
.a | map(. * 2) | @csv
to_entries[] | "\(.key)=\("\(.value)")"
@sh "x \(.a[0])"
reduce .a[] as $x (0; . + $x)
def twice(f; $n): f | f; .a | twice(map(. + 1); 2)
if .a then 1 elif .b then 2 else 3 end
try error("x") catch .
label $out | foreach .a[] as $i (0; . + $i; if . > 2 then ., break $out else . end)
.a[0:1]
getpath(["env", "K"])
input_filename, $__loc__, ([limit(1; .a[])])
{if: 1, import: 2} | .if
. # env
.a?//"x"
""".strip().split("\n")

HARMFUL = [
    ("env", "discloses"),
    ("env.K", "discloses"),
    ("$ENV", "discloses"),
    ("$ENV.K", "discloses"),
    ("{$ENV}", "discloses"),
    ("{a: env}", "discloses"),
    ("{(env.K): 1}", "discloses"),
    ('"\\(env.K)"', "discloses"),
    ('"a\\("b\\($ENV.K)")"', "discloses"),
    ("[1, env]", "discloses"),
    (".[env.K]?", "discloses"),
    ("{a: if . then 1, env, 2 else 3 end}", "discloses"),
    ("def f: env; f", "discloses"),
    ("# x\nenv", "discloses"),
    ('@json "\\(env)"', "discloses"),
    ('import "a" as a; .', "runs"),
    ('include "a"; .', "runs"),
    ('"a" | modulemeta', "discloses"),
    ("get_search_list", "discloses"),
]

UNKNOWN = [
    "$__prog_args",
    "$ ENV",
    "# x \\\nenv",
    "nosuch",
    "a::b",
    '"x',
    '"\\(1"',
    "(",
    ")",
    "[1)",
    "'x'",
    ".a & .b",
    ".\x00",
    ".\r",
    "`id`",
    "{a: nosuch}",
]

FRAGMENTS = [
    *'(){}[]|,.:;?"# \n',
    "env",
    "env",
    "$ENV",
    ".env",
    "env.K",
    "{env",
    "env}",
    "env:",
    "\\(",
    '"\\(',
    ')"',
    "a",
    ".a",
    "$x",
    " as $x|",
    "1",
    "if . then ",
    " else ",
    " end",
    "def f: ",
    "f",
    "{a:",
    ".[]",
    "..",
    "@json ",
    "tojson",
    "keys",
    "\\",
    '\\"',
    "$",
    "try ",
]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("jq"), "jq")


@table("script", HARMLESS)
def test_harmless(script: str) -> None:
    assert check_jq(script) is None


@table("script", HARMLESS if NIGHTLY else HARMLESS[::3])
def test_what_is_harmless_shows_nothing(script: str, scratch: Scratch) -> None:
    assert scratch.effect(["jq", script, "in.json"]) == ""


@table(("script", "effect"), HARMFUL)
def test_harmful(script: str, effect: str) -> None:
    trouble = check_jq(script)
    assert trouble is not None
    assert trouble.why.startswith(f"{effect}: ")
    assert trouble.word in script


@pytest.mark.parametrize(
    "script", ["env", "$ENV.K", '"\\(env.K)"', "{$ENV}", "def f: env; f", "[1, env]", "{(env.K): 1}"]
)
def test_what_is_asked_about_is_real(script: str, scratch: Scratch) -> None:
    assert check_jq(script) is not None
    assert scratch.effect(["jq", script, "in.json"])


@table("script", UNKNOWN)
def test_not_understood(script: str) -> None:
    trouble = check_jq(script)
    assert trouble is not None
    assert trouble.why.startswith("unknown: ")


def test_too_long() -> None:
    assert check_jq("." + " " * (LIMIT - 1)) is None
    assert check_jq("." + " " * LIMIT) is not None


@examples(3_000, daily=30)
@given(pieces=st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=8))
def test_what_passes_shows_no_environment(pieces: list[str], scratch: Scratch) -> None:
    script = "".join(pieces)
    if check_jq(script) is None:
        assert scratch.effect(["jq", script, "in.json"]) == ""


@examples(2_000)
@given(st.text())
def test_never_raises(script: str) -> None:
    check_jq(script)
