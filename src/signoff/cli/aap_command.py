"""`signoff aap`: remote agents that ask a server by the Agent Approval Protocol (AAP)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import click

from signoff.broker.access_keys import INSTANCE_MARK
from signoff.cli import shared_options
from signoff.cli.access_options import check_admin, expires, revoke_each, server_address
from signoff.cli.desk_command import Printed, on_broker
from signoff.cli.terminal_text import iso, local, now
from signoff.core.aap import AapInstance, name_problem
from signoff.core.visible_text import visible
from signoff.errors import WrongUse
from signoff.wiring.project import whoami

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.access import AccessKey

    _Held: TypeAlias = tuple[AapInstance, AccessKey | None]


@click.group()
def aap() -> None:
    """Manage remote agents that ask by the Agent Approval Protocol.

    `signoff serve` answers them at its address with /aap appended. Each agent has its own credential.
    """


@aap.group(invoke_without_command=True)
@click.pass_context
def instance(ctx: click.Context) -> None:
    """Create, list and revoke credentials of remote agents. Without a subcommand: list."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_instances, everything=False, as_json=False, store=None, policy=None)


@instance.command(no_args_is_help=True)
@click.argument("called", metavar="NAME")
@expires("90d", "2h, 90d, 2031-05-24")
@click.option("--here", is_flag=True, help="The agent runs on the server's machine, in the project directory.")
@shared_options.as_json
@shared_options.who
@on_broker(make=True)
async def create(
    broker: Broker, settings: Settings, called: str, lasts: timedelta, here: bool, name: str | None
) -> Printed:
    """Create an instance called NAME. Its credential is printed once and not stored.

    You are the requester of its calls: a rule that excludes the requester excludes you.

    Without --here, its paths are those of another machine: where a rule about paths allows a call, a person is asked.

    \b
    Example:
      signoff aap instance create support-bot
    """
    at = now()
    if problem := name_problem(called):
        raise WrongUse(f"an instance needs {problem}")
    by = whoami(name, settings, via="command")
    check_admin(by, settings, holder=called)
    secret = f"{INSTANCE_MARK}{secrets.token_urlsafe(32)}"
    made, key, _ = await broker.aap.provision(
        str(uuid4()), called, secret, owner=by.name, by=by.name, lasts=lasts, is_here=here
    )
    address = await server_address(None, broker, settings, otherwise="the address that it prints, with /aap")
    use = f"It is not shown again. The agent's client needs it, and this address: {address}/aap"
    return Printed(
        lines=[secret],
        notes=[f"{_facts((made, key), at)}  {made.id}", use],
        data={**_data((made, key), at), "url": f"{address}/aap", "secret": secret},
    )


@instance.command("list")
@click.option("--all", "everything", is_flag=True, help="Include expired and revoked instances.")
@shared_options.as_json
@on_broker()
async def list_instances(broker: Broker, settings: Settings, everything: bool) -> Printed:
    """List instances, oldest first.

    \b
    Example:
      signoff aap instance list
    """
    at = now()
    found = [one for one in await broker.aap.instances() if everything or not _refusal(one, at)]
    lines = [line for one in found for line in _lines(one, at)] or ["No instances."]
    return Printed(lines=lines, data={"instances": [_data(one, at) for one in found]}, where=not found)


@instance.command(no_args_is_help=True)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@shared_options.who
@shared_options.where
def revoke(ids: tuple[str, ...], name: str | None, store: str | None, policy: str | None) -> None:
    """Revoke instances, and withdraw their pending requests. Each ID may be a prefix.

    Calls that people approved, and that they started and did not report, are unknown from then on; a person is asked.

    \b
    Example:
      signoff aap instance revoke b29a43a7
    """
    revoke_each(ids, name, (store, policy), lambda broker: broker.aap.instances(), _revoke)


async def _revoke(broker: Broker, known: Sequence[_Held], given: str, by: str) -> bool:
    found = [one for one, _ in known if given and one.id.startswith(given)]
    if len(found) != 1:
        what = (
            f"there is no instance {visible(given)}" if not found else f"several instances start with {visible(given)}"
        )
        click.echo(f"signoff: {what}", err=True)
        return False
    [one] = found
    if one.revoked_at is not None:
        click.echo(f"already revoked at {local(one.revoked_at)}  {one.id}")
        return True
    await broker.aap.revoke(one.id, by=by)
    click.echo(f"revoked  {one.id}  {visible(one.name)}")
    return True


def _refusal(held: _Held, at: datetime) -> str:
    """Why it is no longer admitted; empty if it is."""
    one, key = held
    if one.revoked_at is not None:
        # The server revokes what has expired; to the reader it expired.
        over = key is not None and key.expires_at is not None and key.expires_at <= one.revoked_at
        return "its credential has expired" if over else "revoked"
    return key.refusal(at).replace("this instance", "its credential") if key is not None else "its credential is gone"


def _facts(held: _Held, at: datetime) -> str:
    """An instance on one line: name, and its expiry or why it is refused."""
    one, key = held
    expires = key.expires_at if key is not None else None
    until = f"until {local(expires)}" if expires is not None else "for ever"
    return f"{visible(one.name)}: {_refusal(held, at) or until}"


def _lines(held: _Held, at: datetime) -> Iterator[str]:
    one, key = held
    yield f"{click.style(one.id, fg='cyan')}  {click.style(_facts(held, at), dim=bool(_refusal(held, at)))}"
    maker = visible(one.provisioner or one.owner)
    facts = [f"made by {maker} {local(one.created_at)}", f"{visible(one.owner)} answers for it"]
    facts += ["runs here"] if one.is_here else []
    used = key.used_at if key is not None else None
    facts += [f"used {local(used)}" if used is not None else "never used"]
    yield click.style(" " * 12 + " · ".join(facts), dim=True)


def _data(held: _Held, at: datetime) -> dict[str, Any]:
    one, key = held
    return {
        "id": one.id,
        "name": one.name,
        "worker": one.worker,
        "owner": one.owner,
        "provisioner": one.provisioner or None,
        "here": one.is_here,
        "created_at": iso(one.created_at),
        "expires_at": iso(key.expires_at) if key is not None else None,
        "used_at": iso(key.used_at) if key is not None else None,
        "revoked_at": iso(one.revoked_at),
        "refusal": _refusal(held, at) or None,
    }
