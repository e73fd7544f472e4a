"""Attempts to get a declared secret onto the record, or shown, by ways that cut it, quote it or do not know it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.kept import ANA, YES, Place, gated, paused, turns
from tests.start import signoff as program

from signoff import ApprovalDecision, resume
from signoff.core.redact import redact
from signoff.core.request import State
from signoff.errors import EditRefused

SECRET = "plain-words-that-look-like-nothing-in-particular"
PIECE = SECRET[:15]
ASK = [{"ask": "login"}]
LOGIN = turns(("login", {"word": SECRET, "to": "shop"}))


def login(word: str, to: str) -> str:
    return "in"


async def test_a_secret_is_masked_before_a_text_is_cut(place: Place) -> None:
    def login(word: str, to: str) -> str:
        return "x" * 480 + SECRET

    signoff = place.gate(ASK, secrets=[SECRET])
    agent = gated(signoff, [*LOGIN[:1], {"say": "x" * 180 + SECRET}], login)
    run = await paused(signoff, agent)
    [request] = await place.answer()
    await resume(agent, run)
    kept = await signoff.broker.get(request.id)
    assert kept.state is State.SUCCEEDED and kept.claim is not None
    assert PIECE not in kept.claim.preview
    assert PIECE not in (await signoff.broker.runs.get(run)).detail
    assert PIECE not in await place.record()


@pytest.mark.parametrize("asks", [True, False])
async def test_what_a_tool_raises_is_masked(place: Place, asks: bool) -> None:
    def login(word: str, to: str) -> str:
        raise OSError("x" * 470 + f"cannot log in with {word}")

    signoff = place.gate(ASK if asks else [{"allow": "login"}], secrets=[SECRET])
    agent = gated(signoff, LOGIN, login)
    if not asks:
        with pytest.raises(OSError, match="cannot log in"):
            await agent.run("go")
    else:
        run = await paused(signoff, agent)
        [request] = await place.answer()
        with pytest.raises(OSError, match="cannot log in"):
            await resume(agent, run)
        kept = await signoff.broker.get(request.id)
        assert kept.claim is not None and kept.claim.error
        assert PIECE not in kept.claim.error
        assert PIECE not in (await signoff.broker.runs.get(run)).detail
    assert PIECE not in await place.record()


@pytest.mark.parametrize("asks", [True, False])
async def test_a_secret_that_an_error_quotes_in_another_spelling_is_masked(place: Place, asks: bool) -> None:
    """The text of a `KeyError` is the `repr` of its key, which escapes one of both kinds of quotes."""
    secret = "p4ss\"w\\'ord/with space é+x"

    def login(word: str, to: str) -> str:
        raise KeyError(word)

    signoff = place.gate(ASK if asks else [{"allow": "login"}], secrets=[secret])
    agent = gated(signoff, turns(("login", {"word": secret, "to": "shop"})), login)
    if asks:
        run = await paused(signoff, agent)
        await place.answer()
        with pytest.raises(KeyError):
            await resume(agent, run)
    else:
        with pytest.raises(KeyError):
            await agent.run("go")
    record = await place.record()
    assert "failed" in record and "KeyError" in record
    assert "p4ss" not in record and "with space" not in record


@pytest.mark.parametrize("args", [{"word": SECRET, "to": "shop"}, {"word": "another", "to": "shop"}])
async def test_a_judge_that_fails_quotes_nothing(place: Place, args: dict[str, Any]) -> None:
    def judge(call: Any, ctx: Any) -> Any:
        raise ValueError(f"cannot ask the directory with {SECRET}")

    signoff = place.gate([{"allow": "login"}], secrets=[SECRET], judge=judge)
    await paused(signoff, gated(signoff, turns(("login", args)), login))
    assert PIECE not in await place.record()
    [request] = await signoff.pending()
    done = program("show", request.id, "--store", place.url)
    assert done.returncode == 0, done.stderr
    assert "cannot ask the directory" in done.stdout
    assert PIECE not in _unwrapped(done.stdout)


async def test_somebody_who_does_not_know_the_secret_does_not_write_it_down(place: Place) -> None:
    signoff = place.gate(ASK, secrets=[SECRET])
    run = await paused(signoff, gated(signoff, LOGIN, login))
    there = place.broker()
    [request] = await there.pending()
    edited = ApprovalDecision(
        approved=True, edited_args={"word": SECRET, "to": "bank"}, note=f"with {SECRET}, but to the bank"
    )
    await there.answer(request.id, edited, by=ANA)
    assert PIECE not in await place.record()
    done = await resume(gated(signoff, LOGIN, login), run)
    assert "A person changed the arguments" in done.output
    record = await place.record()
    assert "bank" in record
    assert PIECE not in record


async def test_the_commands_show_and_write_no_secret(place: Place, tmp_path: Path) -> None:
    policy = tmp_path / "signoff.yaml"
    policy.write_text("policy:\n  - {ask: login}\n")
    signoff = place.gate(str(policy), secrets=[SECRET])
    await paused(signoff, gated(signoff, LOGIN, login))
    [request] = await signoff.pending()
    for asked in (["show", request.id], ["inbox"], ["inbox", "--json"]):
        done = program(*asked, "--store", place.url, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "login" in done.stdout
        assert PIECE not in _unwrapped(done.stdout), asked
    args = json.dumps({"word": SECRET, "to": "bank"})
    done = program("approve", request.id, "--store", place.url, "--as", "ana", "--args", args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert PIECE not in _unwrapped(done.stdout)
    assert (await signoff.broker.get(request.id)).effective_args == {"word": SECRET, "to": "bank"}
    assert PIECE not in await place.record()


@pytest.mark.parametrize("form", [[], ["--json"]])
async def test_nothing_that_is_shown_of_an_answer_holds_the_secret(place: Place, form: list[str]) -> None:
    signoff = place.gate(ASK, secrets=[SECRET])
    await paused(signoff, gated(signoff, LOGIN, login))
    there = place.broker()
    [request] = await there.pending()
    edited = ApprovalDecision(approved=True, edited_args={"word": SECRET, "to": "bank"}, note=f"still {SECRET}")
    await there.answer(request.id, edited, by=ANA)
    done = program("show", request.id, *form, "--store", place.url)
    assert done.returncode == 0, done.stderr
    assert PIECE not in _unwrapped(done.stdout)


async def test_a_mask_given_back_by_hand_is_the_secret_it_stands_for(place: Place, tmp_path: Path) -> None:
    policy = tmp_path / "signoff.yaml"
    policy.write_text("policy:\n  - {ask: login}\n")
    signoff = place.gate(str(policy), secrets=[SECRET])
    await paused(signoff, gated(signoff, LOGIN, login))
    [request] = await signoff.pending()
    args = json.dumps({**redact(request.args, secrets=[SECRET]).args, "to": "bank"})
    program("approve", request.id, "--store", place.url, "--as", "ana", "--args", args, cwd=tmp_path)
    assert (await signoff.broker.get(request.id)).effective_args == {"word": SECRET, "to": "bank"}


def _unwrapped(text: str) -> str:
    """Without what a frame puts into a line that is too long."""
    return "".join(text.replace("│", "").split())


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"word": "x", "to": 5}, "to: should be of type string"),
        ({"word": "x", "to": "bank", "zz": 1}, "zz"),
        ({"word": "x"}, "to"),
        ({"word": SECRET, "to": [SECRET]}, "to: should be of type string"),
    ],
)
async def test_a_broker_takes_no_edit_that_does_not_fit(place: Place, args: dict[str, Any], problem: str) -> None:
    signoff = place.gate(ASK, secrets=[SECRET])
    await paused(signoff, gated(signoff, LOGIN, login))
    there = place.broker()
    [request] = await there.pending()
    with pytest.raises(EditRefused, match=problem) as refused:
        await there.answer(request.id, ApprovalDecision(approved=True, edited_args=args), by=ANA)
    assert PIECE not in str(refused.value)
    assert (await there.get(request.id)).state is State.PENDING
    await there.answer(request.id, YES, by=ANA)
