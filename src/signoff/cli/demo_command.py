"""`signoff demo`: a scripted agent with real files and a real shell in a scratch directory."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from signoff.channels.keyboard import Keyboard
from signoff.channels.render import draw_card
from signoff.channels.script_approver import decision_from
from signoff.channels.terminal import TerminalApprover
from signoff.channels.terminal_screen import Screen
from signoff.cli import shared_options
from signoff.cli.demo_web import serve_demo
from signoff.cli.loops import run
from signoff.cli.progress import one_line, print_event
from signoff.core.card import card_for, rule_text
from signoff.core.decision import ApprovalDecision
from signoff.core.event import CallEvent, CallStep
from signoff.core.people import Actor, ActorKind
from signoff.wiring.demo_agent import run_demo

if TYPE_CHECKING:
    from rich.console import Console

    from signoff.core.mode import ApprovalMode
    from signoff.core.request import ApprovalRequest
    from signoff.ports import ApproverLike

OWN_ANSWERS = "approve,deny,edit,always"
"""What the demo answers without a terminal: in CI, in a container, in a pipe."""
ANSWERS_HELP = "Answer in advance, in order: approve, deny, deny:NOTE, edit, edit:{JSON}, session, always."


@click.command()
@click.option("--answers", metavar="A,B,…", help=ANSWERS_HELP)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Scratch directory. Default: a new one.",
)
@click.option("--web", is_flag=True, help="Ask in the web inbox of a separate server (needs the extra web).")
@shared_options.only_here
def demo(answers: str | None, directory: Path | None, web: bool) -> None:
    """Watch calls of an agent being allowed, asked about and denied.

    A scripted model works on real files in a scratch directory. You need no key and no network. You are asked before
    anything changes. Answer as you like; the summary at the end shows what ran, what did not, and why. Without a
    terminal the demo answers by itself, and says how.

    \b
    Examples:
      signoff demo
      signoff demo --answers approve,deny,edit,always
      signoff demo --web
    """
    if web:
        if answers is not None:
            raise click.UsageError("--web cannot be combined with --answers: you answer in the web inbox.")
        serve_demo(_scratch(directory)[0] if directory is not None else Path(tempfile.mkdtemp(prefix="signoff-demo-")))
        return
    console = Console(stderr=True, highlight=False)
    _check_scratch(directory)
    approver = _approver(answers, console)
    root, grants = _scratch(directory)
    click.echo(f"A scripted agent prepares release notes in {root}", err=True)
    click.echo("Its policy: reading is allowed, changes ask, .env is denied.\n", err=True)
    events: list[CallEvent] = []

    def observe(event: CallEvent) -> None:
        events.append(event)
        print_event(event)

    finished = run(run_demo(root, approver=approver, grants=grants, observe=observe))
    click.echo(f"\nThe agent says: {finished.output}\n")
    _summary(events, root)
    click.secho("Next steps", bold=True)
    program = "signoff" if shutil.which("signoff") else shlex.quote(os.path.abspath(sys.argv[0]))  # as after ./dev demo
    steps = {
        f"{program} init": "a project of your own: policy, worker, script",
        f"{program} doctor": "what its workers can do without a question",
        f"rm -r {shlex.quote(str(root.parent if directory is None else root))}": "removes these files",
    }
    for step, what in steps.items():
        click.echo(f"  {step:<{max(map(len, steps))}}  {what}")


def _approver(answers: str | None, console: Console) -> ApproverLike:
    if answers is None and not sys.stdin.isatty():
        answers = OWN_ANSWERS
        click.echo(f"There is no terminal to ask at, so the demo answers by itself: --answers {answers}\n", err=True)
    if answers is not None:
        return PreparedAnswers(split_answers(answers), console)
    return TerminalApprover()


def _check_scratch(directory: Path | None) -> None:
    """Raise if the directory has files."""
    if directory is not None and directory.exists() and any(directory.iterdir()):
        raise click.UsageError(f"{directory} is not empty; the demo needs an empty directory.")


def _scratch(directory: Path | None) -> tuple[Path, Path]:
    """The directory the agent works in, and a file beside it for grants."""
    if directory is None:
        above = Path(tempfile.mkdtemp(prefix="signoff-demo-"))
        root = above / "work"
        root.mkdir()
        return root, above / "grants.db"
    _check_scratch(directory)
    directory.mkdir(parents=True, exist_ok=True)
    return directory, Path(tempfile.mkdtemp(prefix="signoff-demo-")) / "grants.db"


def split_answers(text: str) -> list[str]:
    """Answers from `--answers`: separated by commas, except inside the braces of `edit:{…}`."""
    answers, depth, current = [""][:0], 0, ""
    for char in text:
        if char == "," and depth == 0:
            answers.append(current.strip())
            current = ""
            continue
        depth += {"{": 1, "}": -1}.get(char, 0)
        current += char
    return [answer for answer in (*answers, current.strip()) if answer]


class PreparedAnswers:
    """Shows every card like the terminal, and answers from a list; when the list is empty, it denies."""

    def __init__(self, answers: list[str], console: Console) -> None:
        self._console = console
        self._answers = answers
        for answer in answers:
            if answer != "edit":
                decision_from(answer)

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        screen = Screen(self._console, Keyboard())
        screen.show(draw_card(card_for(request, zone=datetime.astimezone), screen.look, whole=True).lines)
        answer = self._answers.pop(0) if self._answers else "deny:no answer was left in --answers"
        screen.say(f"your answer > {answer}")
        return replace(_decision(answer, request), by=Actor(name="script", kind=ActorKind.SCRIPT))


def _decision(answer: str, request: ApprovalRequest) -> ApprovalDecision:
    from signoff.workers.demo.agent import EDITS

    if answer == "edit":
        return ApprovalDecision(approved=True, edited_args={**request.args, **EDITS.get(request.tool_name, {})})
    return decision_from(answer)


def _summary(events: list[CallEvent], root: Path) -> None:
    why = {event.call.path: event for event in events if event.what not in (CallStep.RAN, CallStep.ASKED)}
    ran = {event.call.path for event in events if event.what is CallStep.RAN}
    click.secho("What ran", bold=True)
    for path, event in why.items():
        if path in ran:
            click.echo(f"  {one_line(event)}\n      {_on_whose_word(event)}")
    click.secho("What did not", bold=True)
    for path, event in why.items():
        if path not in ran:
            click.echo(f"  {one_line(event)}\n      {event.what} by {event.by}: {event.text}")
    click.secho(f"In {root} now", bold=True)
    for file in sorted(root.rglob("*")):
        if file.is_file():
            click.echo(f"  {file.relative_to(root)}")


def _on_whose_word(event: CallEvent) -> str:
    asked = event.request.verdict if event.request is not None else None  # of what was asked; it may have been edited
    rules = ", ".join(found.rules) if (found := asked or event.verdict) is not None else ""
    match event.what:
        case CallStep.ALLOWED:
            return f"allowed by {rule_text(rules)}"
        case CallStep.REMEMBERED:
            return "not asked again: an earlier answer was remembered always"
        case CallStep.APPROVED if event.request is not None and event.request.decision is not None:
            decision = event.request.decision
            edited = ", with other arguments" if decision.edited_args is not None else ""
            asked = f"asked by {rule_text(rules)}" if rules else "asked, because no rule allows it"
            return f"{asked}; approved by {decision.by}{edited}"
        case _:
            return str(event.what)
