"""`signoff tokens`: access tokens for programs and commands that use a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import shared_options
from signoff.cli.access_options import check_admin, expires, holder_named, revoke_each
from signoff.cli.desk_command import Printed, on_broker
from signoff.cli.terminal_text import iso, local, now
from signoff.core.access import AccessKey, AccessKind, Permission
from signoff.core.people import person_key
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.errors import WrongUse
from signoff.wiring.project import whoami

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings


@click.group(invoke_without_command=True)
@click.pass_context
def tokens(ctx: click.Context) -> None:
    """Create, list and revoke tokens for a server. Without a subcommand: list."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_tokens, everything=False, as_json=False, store=None, policy=None)


@tokens.command(no_args_is_help=True)
@click.argument("holder", metavar="NAME")
@click.option("--program", is_flag=True, help="NAME is a program: its answers never count as a person's.")
@click.option(
    "--permission",
    "permissions",
    multiple=True,
    type=click.Choice([str(one) for one in Permission if one is not Permission.REQUEST]),
    default=["read"],
    show_default=True,
    help="What the holder may do. Repeatable. Never more than the person may.",
)
@expires("90d", "2h, 90d, 2031-05-24")
@click.option("--label", default="", metavar="TEXT", help="A label: what the token is for.")
@shared_options.as_json
@shared_options.who
@on_broker(make=True)
async def create(
    broker: Broker,
    settings: Settings,
    holder: str,
    program: bool,
    permissions: tuple[str, ...],
    lasts: timedelta,
    label: str,
    name: str | None,
) -> Printed:
    """Create a token for NAME. Its secret is printed once and not stored.

    If signoff.yaml names admins, only they can create tokens for others and for programs.

    \b
    Example:
      signoff tokens create deploy-bot --program --permission read --permission run
      signoff tokens create ana --permission read --permission answer --label laptop
    """
    at = now()
    wanted = frozenset(map(Permission, permissions))
    by = whoami(name, settings, via="command")
    if Permission.PROVISION in wanted and not program:
        raise WrongUse("only programs can create instances\n  Add --program, and give the program its own name")
    whose = _program(holder, settings) if program else _person(holder, wanted, settings)
    check_admin(by, settings, holder=whose)
    key, secret = await broker.access.issue(
        AccessKind.TOKEN, whose, by=by.name, lasts=lasts, label=label, is_program=program, permissions=wanted
    )
    use = "It is not shown again. Programs send it as `Authorization: Bearer …`"
    return Printed(
        lines=[secret], notes=[f"{_facts(key, at)}  {key.id}", use], data={**_data(key, at), "secret": secret}
    )


@tokens.command("list")
@click.option("--all", "everything", is_flag=True, help="Include expired and revoked tokens.")
@click.option("--sessions", is_flag=True, help="Include browser sessions and sign-in links.")
@shared_options.as_json
@on_broker()
async def list_tokens(broker: Broker, settings: Settings, everything: bool, sessions: bool = False) -> Printed:
    """List tokens, oldest first.

    \b
    Example:
      signoff tokens list
    """
    at = now()
    kept = await broker.access.list(kind=None if sessions else AccessKind.TOKEN)
    found = [one for one in kept if everything or not one.refusal(at)]
    lines = [line for one in found for line in _lines(one, at)] or ["No tokens."]
    return Printed(lines=lines, data={"tokens": [_data(one, at) for one in found]}, where=not found)


@tokens.command(no_args_is_help=True)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@shared_options.who
@shared_options.where
def revoke(ids: tuple[str, ...], name: str | None, store: str | None, policy: str | None) -> None:
    """Revoke tokens, sessions and links. They stop working at once. Each ID may be a prefix.

    \b
    Example:
      signoff tokens revoke h4w8
    """
    revoke_each(ids, name, (store, policy), lambda broker: broker.access.list(), _revoke)


async def _revoke(broker: Broker, known: Sequence[AccessKey], given: str, by: str) -> bool:
    found = [one for one in known if given and one.id.startswith(given)]
    if len(found) != 1:
        what = f"there is no token {visible(given)}" if not found else f"several tokens start with {visible(given)}"
        click.echo(f"signoff: {what}", err=True)
        return False
    key = found[0]
    if key.revoked_at is not None:
        click.echo(f"already revoked at {local(key.revoked_at)}  {key.id}")
        return True
    done = await broker.access.revoke(key.id, by=by)
    click.echo(f"revoked  {done.id}  {_facts(done, now())}")
    return True


def _person(name: str, wanted: frozenset[Permission], settings: Settings) -> str:
    holder = holder_named(name, settings)
    if Permission.ADMIN in wanted and settings.people and not settings.people[holder].admin:
        raise WrongUse(
            f"{visible(holder)} is not an admin, so their token cannot have admin rights\n"
            "  Set admin: true under `people` first"
        )
    return holder


def _program(name: str, settings: Settings) -> str:
    if not name.strip():
        raise WrongUse("a program needs a name")
    if person_key(name) in map(person_key, settings.people):
        raise WrongUse(f"{visible(name)} is a person\n  Give the program another name, or leave out --program")
    return name.strip()


def _facts(key: AccessKey, at: datetime) -> str:
    """A key on one line: kind, holder, permissions, expiry."""
    what = "program" if key.is_program else str(key.kind)
    until = f"until {local(key.expires_at)}" if key.expires_at is not None else "for ever"
    over = key.refusal(at)
    return f"{what} of {visible(key.holder)}: {', '.join(sorted(key.permissions))}, {over or until}"


def _lines(key: AccessKey, at: datetime) -> Iterator[str]:
    over = bool(key.refusal(at))
    yield f"{click.style(key.id, fg='cyan')}  {click.style(_facts(key, at), dim=over)}"
    facts = [safe_text(key.label)] if key.label else []
    facts += [f"made by {visible(key.created_by)} {local(key.created_at)}"]
    facts += [f"used {local(key.used_at)}" if key.used_at is not None else "never used"]
    yield click.style(" " * 12 + " · ".join(facts), dim=True)


def _data(key: AccessKey, at: datetime) -> dict[str, Any]:
    return {
        "id": key.id,
        "kind": str(key.kind),
        "holder": key.holder,
        "is_program": key.is_program,
        "label": safe_text(key.label) or None,
        "permissions": sorted(key.permissions),
        "created_at": iso(key.created_at),
        "created_by": key.created_by,
        "expires_at": iso(key.expires_at),
        "used_at": iso(key.used_at),
        "revoked_at": iso(key.revoked_at),
        "refusal": key.refusal(at) or None,
    }
