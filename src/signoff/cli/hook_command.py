"""`signoff hook`: gate coding agents with the policy and the inbox of a project."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from signoff.cli import shared_options
from signoff.cli.durations import read_duration
from signoff.cli.server_choice import VARIABLE
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import safe
from signoff.config import find_project
from signoff.config.file_exchange import exchange
from signoff.config.files import PROJECT_FILE, user_file
from signoff.core.exit_codes import FAILED
from signoff.errors import WrongUse
from signoff.outside.agent_version import check_version
from signoff.outside.coding_agents import AGENTS, HookedOn
from signoff.outside.hook_check import check_hooks, server_in
from signoff.outside.hook_settings import (
    HookPlace,
    commands_in,
    hook_command,
    installed,
    is_own_command,
    project_places,
    uninstalled,
    user_places,
)
from signoff.wiring import hook_launcher, hook_resident, project_trust
from signoff.wiring.project_trust import is_trusted

_agent = click.argument("agent", type=click.Choice(tuple(AGENTS)), metavar="AGENT")


@click.group()
def hook() -> None:
    """Gate the tool calls of Claude Code, Codex and Gemini CLI with the policy of the project they work in.

    Allowed calls run, denied calls are refused, and all others wait in the inbox for an answer.

    \b
    Start with:
      signoff init --for claude-code
      signoff hook install claude-code --project
      signoff inbox --watch
    """


@hook.command()
@_agent
@click.option("--user", "where", flag_value="user", default=True, help="In your user settings. The default.")
@click.option("--project", "where", flag_value="project", help="In the settings of the current project.")
@click.option("--wait", default="1h", show_default=True, metavar="TIME", help="How long a call waits for an answer.")
@click.option(
    "--on",
    type=click.Choice([one.value for one in HookedOn]),
    default=HookedOn.EVERY_CALL.value,
    show_default=True,
    help="Decide every call, or only those that Claude Code would ask you about.",
)
@click.option("--server", metavar="URL", help="Ask the people of this `signoff serve`, not those here.")
@click.option("--token-file", metavar="FILE", help="Credential for that server: `signoff aap instance create`.")
@click.option("--dry-run", is_flag=True, help="Show the change without making it.")
@click.option("--yes", is_flag=True, help="Change the file without asking for confirmation.")
def install(
    agent: str, where: str, wait: str, on: str, server: str | None, token_file: str | None, dry_run: bool, yes: bool
) -> None:
    """Install the hook for AGENT. The change to its settings is shown as a diff first; other hooks are not changed."""
    place, patience, hooked_on = _place(agent, where), read_duration(wait), HookedOn(on)
    if hooked_on not in place.host.events:
        raise WrongUse(f"{place.host.title} has no hook on permission requests that signoff answers")
    server, token_file = _server(server, token_file)
    launcher = os.path.abspath(hook_launcher.__file__)
    command = hook_command(agent, launcher, patience, project=place.project, server=server, token_file=token_file)
    before = _text(place)
    asked = {server_in(one)[0] for _, one, _ in commands_in(before, place) if is_own_command(one)} - {"", server}
    for other in sorted(asked):
        whom = f"those of {safe(server)}" if server else "those here"
        click.echo(f"Note: this hook asks the people of {safe(other)} until now, and {whom} from now on.")
    after = installed(before, place, command, patience, hooked_on)
    if not _change(place, before, after, dry_run=dry_run, yes=yes):
        return
    version = check_version(place.host)
    if told := version.problem or version.unknown:
        click.echo(f"{'Warning' if version.problem else 'Note'}: {safe(told)}.", err=bool(version.problem))
    if place.host.needs:
        click.echo(f"Note: {place.host.needs}.")
    if hooked_on is HookedOn.PERMISSION_REQUEST:
        click.echo(f"Note: what {place.host.title}'s own settings and mode allow runs without signoff.")
    _say_policy(place, server)


@hook.command()
@_agent
@click.option("--user", "where", flag_value="user", default=True, help="From your user settings. The default.")
@click.option("--project", "where", flag_value="project", help="From the settings of the current project.")
@click.option("--dry-run", is_flag=True, help="Show the change without making it.")
@click.option("--yes", is_flag=True, help="Change the file without asking for confirmation.")
@shared_options.only_here
def uninstall(agent: str, where: str, dry_run: bool, yes: bool) -> None:
    """Remove the hook from AGENT's settings. Other hooks are not changed."""
    place = _place(agent, where)
    before = _text(place)
    _change(place, before, uninstalled(before, place), dry_run=dry_run, yes=yes)


@hook.command()
@shared_options.as_json
@shared_options.only_here
def status(as_json: bool) -> None:
    """Report for which agents the hook is installed, and what prevents it from working."""
    found = check_hooks(os.path.expanduser("~"), _project())
    if as_json:
        click.echo(json_line({"hooks": [one.data() for one in found]}))
    else:
        if not found:
            click.echo(f"No hook is installed: signoff hook install AGENT installs it ({', '.join(AGENTS)}).")
        for one in found:
            click.echo(f"{one.place.agent:12}  {safe(one.place.file)}: {one.state}")
            for problem in one.problems:
                click.echo(f"              ! {safe(problem)}")
            if one.version.unknown:
                click.echo(f"              ? {safe(one.version.unknown)}")
        for title in dict.fromkeys(one.place.host.title for one in found if one.is_installed):
            click.echo(
                f"Note: {title} runs a call if the shell of its hook is killed, or its timeout for the hook passes."
            )
    if any(one.is_installed and one.problems for one in found):
        sys.exit(FAILED)


@hook.command()
@click.argument("directory", default=".", type=click.Path(exists=True, file_okay=False))
@click.option("--remove", is_flag=True, help="Stop trusting it.")
@shared_options.only_here
def trust(directory: str, remove: bool) -> None:
    """Let your own hook go by the signoff.yaml of DIRECTORY, as it is now. Read the file first.

    A hook that is installed for everything you do goes by no project's file that you have not trusted: a repository
    that you cloned brings its own. When the file changes, trust it again. Rules that signoff writes for you keep it
    trusted.
    """
    file = find_project(directory)
    if file is None:
        raise WrongUse(f"there is no signoff.yaml in {os.path.abspath(directory)} or above it")
    file = os.path.realpath(file)
    if remove:
        done = project_trust.distrust(file)
        click.echo(f"{safe(file)} is {'no longer' if done else 'not'} trusted.")
        return
    done = project_trust.trust(file)
    click.echo(f"{safe(file)} is trusted{'' if done else ' already'}, as it is now.")


@hook.command()
@shared_options.only_here
def serve() -> None:
    """Run the resident helper that answers hooks in milliseconds. A hook starts it; it exits when idle."""
    try:
        hook_resident.main()
    except OSError as error:
        raise WrongUse(f"the helper cannot listen: {error}; hooks run without it") from error


def _answers(agent: str) -> click.Command:
    @click.command(agent, hidden=True)
    @click.option("--limit", type=float, default=3600.0, show_default=True, help="Give up after this many seconds.")
    @click.option("--project", default="", metavar="DIR", help="Use the policy of this project.")
    @click.option("--store", metavar="URL", help="Store for requests.")
    @click.option("--server", default="", metavar="URL", help="Server whose people are asked.")
    @click.option("--token-file", default="", metavar="FILE", help="Credential for that server.")
    def answer(limit: float, project: str, store: str | None, server: str, token_file: str) -> None:
        """Handle one event of the agent from standard input. The installed hook runs this."""
        words = [agent, "--limit", f"{limit:g}", "--project", project, "--store", store or ""]
        words += ["--server", server, "--token-file", token_file]
        sys.exit(hook_launcher.main(words))

    return answer


for _name in AGENTS:
    hook.add_command(_answers(_name))


def _place(agent: str, where: str) -> HookPlace:
    if where == "user":
        return user_places(os.path.expanduser("~"))[agent]
    return project_places(_project() or os.path.realpath(os.curdir))[agent]


def _project() -> str:
    """The directory of the current project; empty if there is none."""
    found = find_project()
    return os.path.dirname(os.path.realpath(found)) if found is not None else ""


def _text(place: HookPlace) -> str:
    try:
        return Path(place.file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise WrongUse(f"{place.file} cannot be read: {error}") from error


def _change(place: HookPlace, before: str, after: str, *, dry_run: bool, yes: bool) -> bool:
    """Show the diff, confirm and write it. Returns whether the file has the new text."""
    from difflib import unified_diff

    if before == after:
        click.echo(f"{safe(place.file)} is up to date; nothing was changed.")
        return True
    for line in unified_diff(before.splitlines(), after.splitlines(), place.file, place.file, lineterm="", n=2):
        click.echo(safe(line))
    if dry_run:
        click.echo("Nothing was changed.")
        return False
    if not yes and sys.stdin.isatty() and not click.confirm("Change the file?", default=True):
        click.echo("Nothing was changed.")
        return False
    if os.path.lexists(place.file):
        exchange(place.file, before, after)
    else:
        os.makedirs(os.path.dirname(place.file), exist_ok=True)
        Path(place.file).write_text(after, encoding="utf-8")
    click.echo(f"wrote {safe(place.file)}")
    return True


def _server(url: str | None, file: str | None) -> tuple[str, str]:
    """The server whose people are asked and its token file, both checked; empty for the local inbox."""
    from signoff.outside.aap_client import AapClient, read_token

    if not url and not file:
        return "", ""
    url = url or os.environ.get(VARIABLE, "")
    if not url or not file:
        raise click.UsageError(f"give both --token-file and --server; {VARIABLE} can replace --server")
    file = os.path.abspath(file)
    return AapClient(url, read_token(file)).url, file


def _say_policy(place: HookPlace, server: str) -> None:
    """Print whose rules apply, and where requests are answered."""
    project = _project()
    file = user_file()
    rules = project or (file if file and os.path.exists(file) else "")
    if server:
        first = f" first by {safe(rules)}, and what that asks about" if rules else ""
        click.echo(f"Its calls are judged{first} by the policy of {safe(server)}.")
    elif rules:
        click.echo(f"Its calls are judged by {safe(rules)}.")
    else:
        click.echo(f"There is no signoff.yaml here: every call will ask. `signoff init --for {place.agent}`")
        click.echo("writes a ready-made one.")
    if project and not place.project and not is_trusted(os.path.join(project, PROJECT_FILE)):
        click.echo("The project's file applies once you have reviewed it and run: signoff hook trust")
    where = f" of {safe(server)}" if server else ": signoff inbox --watch"
    click.echo(f"Requests wait in the inbox{where}")
