"""Check whether the installed hooks of coding agents can refuse calls (`signoff hook status`, `signoff doctor`)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

from signoff.errors import WrongUse
from signoff.outside.agent_version import FINE, VersionCheck, check_version
from signoff.outside.coding_agents import HookedOn
from signoff.outside.hook_settings import HookPlace, commands_in, is_own_command, project_places, user_places
from signoff.outside.hook_trust import why_skipped
from signoff.outside.json_edit import read_json
from signoff.regular_file import bytes_of

BEFORE = ("PreToolUse", "BeforeTool", "PermissionRequest")
"""The events at which a call can be refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFinding:
    """The result for one settings file of an agent."""

    place: HookPlace
    is_installed: bool
    problems: tuple[str, ...] = ()
    repair: str = ""
    """The command that installs the same hook again, if there is one."""
    version: VersionCheck = FINE
    is_skipped: bool = False
    """Whether the agent does not run it, so that nothing is judged."""

    @property
    def state(self) -> str:
        """Return in a few words whether the agent asks signoff."""
        if not self.is_installed:
            return "no hook"
        return "installed, not trusted: every call runs unjudged" if self.is_skipped else "installed"

    def data(self) -> dict[str, Any]:
        """Return the same as JSON data."""
        problems = list(self.problems)
        return {
            "agent": self.place.agent,
            "file": self.place.file,
            "installed": self.is_installed,
            "skipped": self.is_skipped,
            "problems": problems,
            "version_unknown": self.version.unknown,
        }


def check_hooks(home: str, project: str) -> list[HookFinding]:
    """Check each agent whose settings directory exists."""
    places = [*user_places(home).values(), *(project_places(project).values() if project else ())]
    found = [_finding(place) for place in places if os.path.isdir(os.path.dirname(place.file))]
    return [_with_others(one, found) for one in found]


def _with_others(one: HookFinding, found: list[HookFinding]) -> HookFinding:
    """Add a problem if the hook is installed twice: the first claims the approval, and the second finds it used."""
    others = [other for other in found if other.is_installed and other.place.agent == one.place.agent]
    if not one.is_installed or not one.place.project or len(others) < 2:
        return one
    twice = (
        "the hook is installed for you and for this project, so calls that a person approved are refused: "
        f"signoff hook uninstall {one.place.agent} --project"
    )
    return replace(one, problems=(*one.problems, twice))


def _finding(place: HookPlace) -> HookFinding:
    try:
        text = bytes_of(place.file).decode("utf-8")
    except FileNotFoundError:
        return HookFinding(place=place, is_installed=False)
    except (OSError, ValueError) as error:
        return HookFinding(place=place, is_installed=False, problems=(f"it cannot be read: {error}",))
    try:
        settings: object = read_json(text, place.file).value
        hooks = list(commands_in(text, place))
    except WrongUse as error:
        return HookFinding(place=place, is_installed=False, problems=(str(error),))
    own = [one for one in hooks if is_own_command(one[1])]
    known = cast("Mapping[str, Any]", settings) if isinstance(settings, dict) else dict[str, Any]()
    problems = [*_loose(known), *(_wrong(place, own, hooks) if own else ())]
    skipped = why_skipped(place) if own else ""
    version = check_version(place.host) if own else FINE
    return HookFinding(
        place=place,
        is_installed=bool(own),
        problems=tuple(filter(None, (skipped, version.problem, *problems))),
        version=version,
        repair=install_command(place, own) if own else "",
        is_skipped=bool(skipped),
    )


def _loose(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield settings of the agent that disable the hook or its effect."""
    if settings.get("disableAllHooks") is True:
        yield "disableAllHooks is set: no hook runs, so only the agent's own rules apply"
    permissions = settings.get("permissions")
    mode = cast("Mapping[str, Any]", permissions).get("defaultMode") if isinstance(permissions, dict) else None
    if mode == "bypassPermissions":
        yield "permissions.defaultMode is bypassPermissions: without the hook, every call runs without a question"
    tools = settings.get("hooksConfig")
    if isinstance(tools, dict) and cast("Mapping[str, Any]", tools).get("enabled") is False:
        yield "hooksConfig.enabled is false: no hook runs"


def _wrong(place: HookPlace, own: list[tuple[str, str, float]], hooks: list[tuple[str, str, float]]) -> Iterator[str]:
    events = {event for event, _, _ in own}
    for event in place.host.events[hooked_on(own)]:
        if event not in events:
            yield f"there is no hook for {event}: {install_command(place, own)} writes it"
    for command in dict.fromkeys(command for _, command, _ in own):
        yield from _broken(command)
    for event, command, seconds in own:
        limit = _limit(command)
        if event in BEFORE and seconds and limit and seconds <= limit:
            yield f"the agent waits {seconds:g} s and the hook {limit:g} s: a hook that times out lets the call run"
    for event, command, _ in hooks:
        if event in BEFORE and not is_own_command(command):
            yield f"another hook also handles {event} and may change the call after it was checked: {command[:80]}"


def _broken(command: str) -> Iterator[str]:
    if not command.rstrip().endswith("|| exit 2"):
        yield "the command does not end with `|| exit 2`: where it cannot be started, calls would run"
    try:
        words = shlex.split(command)
    except ValueError:
        yield f"the command cannot be read: {command[:80]}"
        return
    for file in words[:1] + words[2:3]:
        if not os.path.exists(file):
            yield f"{file} is not there: every call is refused until the hook is installed again"
    server, token_file = server_in(command)
    if server:
        from signoff.outside.aap_client import AapClient, read_token

        try:
            AapClient(server, read_token(token_file))
        except WrongUse as error:
            yield f"every call is refused: {str(error).partition(chr(10))[0]}"


def install_command(place: HookPlace, own: list[tuple[str, str, float]]) -> str:
    """Return the command that installs the present hooks again, for the same server if they ask one."""
    words = ["signoff", "hook", "install", place.agent, *(["--project"] if place.project else [])]
    words += [] if (on := hooked_on(own)) is HookedOn.EVERY_CALL else ["--on", on]
    server, token_file = next((found for _, command, _ in own if (found := server_in(command))[0]), ("", ""))
    return shlex.join([*words, *(["--server", server, "--token-file", token_file] if server else [])])


def hooked_on(own: list[tuple[str, str, float]]) -> HookedOn:
    """Return which calls these hooks decide."""
    events = {event for event, _, _ in own}
    asked = "PermissionRequest" in events and events.isdisjoint({"PreToolUse", "BeforeTool"})
    return HookedOn.PERMISSION_REQUEST if asked else HookedOn.EVERY_CALL


def server_in(command: str) -> tuple[str, str]:
    """Return the server that a hook asks, and the file of its credential; empty: it asks the people here."""
    try:
        given = dict(pairwise(shlex.split(command)))
    except ValueError:
        return "", ""
    return given.get("--server", ""), given.get("--token-file", "")


def _limit(command: str) -> float:
    words = command.split()
    try:
        return float(words[words.index("--limit") + 1])
    except (ValueError, IndexError):
        return 0.0
