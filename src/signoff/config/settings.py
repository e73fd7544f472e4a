"""Load `signoff.yaml`: the policy, who answers and where, the toolsets, the store, and the default model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from signoff.channel_kinds import BUILT_IN, ChannelAccount, built_in
from signoff.config import channel_entries, toolset_entries, worker_keys
from signoff.config.agent_entries import AGENTS, AgentEntry
from signoff.config.channel_entries import CHANNELS, ONLY_BUILT_IN, ChannelEntry, has_foreign_kinds, read_channels
from signoff.config.entries import ToolsetEntry
from signoff.config.files import own_text, text_of, user_file
from signoff.config.llm_do_words import foreign_hint
from signoff.config.server_entry import SERVER, ServerEntry
from signoff.config.stricter_layers import tightening, unheard_problem
from signoff.config.toolset_entries import TOOLSETS, known_tools, read_toolsets
from signoff.config.variables import filled
from signoff.core.people import account_key
from signoff.policy.composer import read_document
from signoff.policy.engine import Policy
from signoff.policy.format import FLAG, DeferredFormat, Format, MappingFormat, each, matching, text, texts
from signoff.policy.operators import kind_of
from signoff.policy.parse import EXAMPLE, RULES, policy_in
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue
from signoff.policy.policy_source import read_policy
from signoff.policy.rule import Rule

if TYPE_CHECKING:
    from signoff.policy.lint import Problem

USER = "user"
"""The name of the user's own policy layer: its rules are `user/rule-1` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who may answer, and how to reach them."""

    name: str
    roles: frozenset[str] = frozenset()
    accounts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Their accounts, by the key of each: those of channels, and `email`."""
    admin: bool = False
    """Whether they may halt execution and manage the keys of others on a server."""

    @property
    def email(self) -> str:
        return self.accounts.get("email", "")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The content of a `signoff.yaml`."""

    policy: Policy
    people: Mapping[str, Person]
    model: str | None = None
    """The default model for workers."""
    store: str | None = None
    """The store for requests, answers and runs: `sqlite:FILE`, or `postgresql://…`."""
    on_denied: Literal["tell", "raise"] = "tell"
    """Whether a denial is told to the model, or raised. A worker may say otherwise."""
    file: str = ""
    toolsets: Mapping[str, ToolsetEntry] = field(default_factory=dict[str, ToolsetEntry])
    """The toolsets that the file adds to the catalog."""
    plugins: tuple[str, ...] = ()
    """Patterns of the modules that toolsets and channels may be imported from."""
    channels: Mapping[str, ChannelEntry] = field(default_factory=dict[str, ChannelEntry])
    """Where people are asked, besides the terminal of a command."""
    agents: Mapping[str, AgentEntry] = field(default_factory=dict[str, AgentEntry])
    """Agents of programs, by name: `signoff serve` and `signoff resume` resume their runs."""
    server: ServerEntry = field(default_factory=ServerEntry)
    """The address of `signoff serve`, and how people sign in."""
    locked: bool = False
    """Whether flags and the environment may only tighten what the file says."""
    user: Policy | None = None
    """The user's own rules, which apply in every project. If the project is locked, only those that tighten."""
    unheard: tuple[Rule, ...] = ()
    """The user's rules that do not apply as written, because the project is locked."""
    directory: str = field(default_factory=lambda: Path(os.path.realpath(".")).as_posix())
    """The real path of the project directory, or of the working directory if there is no file."""
    defaults: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """`defaults` for a `worker`, a `toolset` and a `channel`, as written; already merged into the entries."""
    spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """The position of each key of the file; under `user`, the user's own rules."""

    @property
    def layers(self) -> tuple[Policy, ...]:
        """The policies that apply to everything that runs here, the outermost first."""
        return (self.policy,) if self.user is None else (self.user, self.policy)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is valid but probably not meant, in the policy and about who can answer."""
        named = (entry.policy for entry in self.toolsets.values() if entry.policy is not None)
        policies = (*self.layers, *named)
        odd = (one for policy in policies for one in policy.warnings)
        told = (*odd, *self._unanswerable(policies), *map(unheard_problem, self.unheard), *self.closed_toolsets)
        # Report a rule once, if several entries share it through `extends`.
        return tuple({(one.place, one.what.removeprefix(one.rule)): one for one in told}.values())

    @property
    def closed_toolsets(self) -> Iterator[Problem]:
        """Toolsets whose every known call is denied by an `otherwise` rule outside of the toolset."""
        from signoff.policy.lint import Problem  # only checks need these
        from signoff.policy.reach import UNSURE, reach

        if not any(rule.otherwise for policy in self.layers for rule in policy.rules):
            return
        for name, entry in self.toolsets.items():
            found = [reach(self.layers, tool, name, labels=UNSURE).never for tool in sorted(known_tools(entry))]
            if found and (rule := found[0]) is not None and all(one is not None and one.otherwise for one in found):
                what = f"the toolset {shown(name)} can do nothing: {rule.id} denies what no rule above it matches"
                fix = "name its tools above it, or say what it is meant for: {otherwise: deny, toolset: NAME}"
                yield Problem(what, rule.place, rule.id, fix, "closed-toolset")

    def toolset_layers(self, name: str | None) -> tuple[Policy, ...]:
        """The rules of a toolset: those of its entry, and below them those of a built-in one."""
        from signoff.policy.builtin import builtin_policy  # few commands need it

        if name is None:
            return ()
        entry = self.toolsets.get(name)
        own = entry.policy if entry is not None else None
        root = own.root if own is not None else self.policy.root
        found = (own, builtin_policy(entry.use if entry is not None else name, root))
        return tuple(one for one in found if one is not None)

    def _unanswerable(self, policies: Iterable[Policy]) -> Iterator[Problem]:
        from signoff.policy.lint import Problem

        if not self.people:
            return
        roles = {role for person in self.people.values() for role in person.roles}
        for rule in (rule for policy in policies for rule in policy.rules):
            needed = rule.requirement
            for role in filter(None, (needed.role, needed.escalate_to, needed.veto)):
                if role not in roles:
                    what = f"{rule.id} needs the role {shown(role)}, which nobody in `people` has"
                    yield Problem(what, rule.place, rule.id, did_you_mean(role, roles))
            if 0 < (able := self._able(needed.role)) < needed.quorum:
                what = f"{rule.id} needs {needed.quorum} people, and `people` has {able} who may answer"
                yield Problem(what, rule.place, rule.id)
            then = needed.escalated
            if needed.escalate_to and 0 < (able := self._able(then.role)) < then.quorum:
                who = f"{then.quorum} people with the role {shown(needed.escalate_to)}"
                what = f"once escalated, {rule.id} needs {who}, and `people` has {able}"
                yield Problem(what, rule.place, rule.id)

    def _able(self, role: str | None) -> int:
        return sum(role is None or role in person.roles for person in self.people.values())


def load_policy(path: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None) -> Policy:
    """Load the policy of a `signoff.yaml`. Relative paths start from `root`, by default the directory of the file."""
    return _load(path, root).policy


def load_settings(path: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None) -> Settings:
    """Load a `signoff.yaml` and the user's own rules. Raises `WrongFile` with the position of an error."""
    return with_user(_load(path, root))


def load_people(path: str | os.PathLike[str]) -> dict[str, Person] | None:
    """Load only the `people` of a `signoff.yaml`; None if it is empty. The rest is not validated."""
    top = ConfigValue.top(read_document(text_of(os.fspath(path)), file=os.fspath(path)))
    if top.value is None:
        return None
    entries = top.entries()
    return _read_people(entries["people"], entries.get("channels")) if "people" in entries else {}


def no_settings(directory: str | os.PathLike[str] = ".") -> Settings:
    """The settings without a file: only the user's own rules, and everything else is asked about."""
    real = Path(os.path.realpath(directory)).as_posix()
    return with_user(Settings(policy=Policy(rules=()), people={}, directory=real))


def with_user(settings: Settings) -> Settings:
    """Add the user's own rules to the settings, if there are any. Relative paths in them start from the project."""
    file = user_file()
    if file is None or not os.path.lexists(file):
        return settings
    text = own_text(file)
    top = ConfigValue.top(read_document(text, file=file))
    entries = top.entries(("policy",), what="a mapping with `policy`") if top.value is not None else {}
    rules = policy_in(top, entries)
    user = read_policy(rules, name=USER, root=settings.directory)
    user, unheard = tightening(user, rules) if settings.locked else (user, ())
    return replace(settings, user=user, unheard=unheard, spots={**settings.spots, USER: rules})


def _load(path: str | os.PathLike[str], root: str | os.PathLike[str] | None) -> Settings:
    file = os.fspath(path)
    top = ConfigValue.top(read_document(text_of(file), file=file))
    whole: object = top.value
    if whole is not None and not isinstance(whole, dict):
        raise top.wrong(f"this should be a mapping with `policy`, not {kind_of(whole)}", EXAMPLE)
    entries = PROJECT.entries(top) if whole is not None else {}
    # The real path, because symlinks in arguments are followed too: both must lead to the same place.
    start = Path(root) if root is not None else Path(file).parent
    directory = Path(os.path.realpath(start)).as_posix()
    defaults = _read_defaults(entries["defaults"]) if "defaults" in entries else {}
    # Toolsets have rules of their own. A file with neither toolsets nor a policy is an error.
    if "policy" in entries or "toolsets" not in entries:
        policy = read_policy(policy_in(top, entries), root=directory)
    else:
        policy = Policy(rules=(), file=file, root=directory)
    found: dict[str, Any] = {"people": {}, "defaults": defaults}
    for key, spot in entries.items():
        if key == "toolsets":
            found[key] = read_toolsets(spot, defaults.get("toolset"), directory)
        elif key == "channels":
            found[key] = read_channels(spot, defaults.get("channel"))
        elif key == "people":
            found[key] = _read_people(spot, entries.get("channels"))
        elif key not in ("policy", "defaults"):
            found[key] = PROJECT.keys[key].read(spot)
    return Settings(policy=policy, file=file, directory=directory, spots=entries, **found)


def _read_store(spot: ConfigValue) -> str:
    return filled(spot.text("a store such as sqlite:FILE"), spot).value


def _read_plugins(spot: ConfigValue) -> tuple[str, ...]:
    if not isinstance(spot.value, dict):
        raise spot.wrong(*_NO_PLUGINS)
    return PLUGINS.read(spot)["allow"]


def _read_defaults(spot: ConfigValue) -> dict[str, ConfigValue]:
    entries = DEFAULTS.entries(spot)
    DEFAULTS.values(entries)
    return entries


def _read_people(spot: ConfigValue, channels: ConfigValue | None = None) -> dict[str, Person]:
    """Read who may answer. Channels of kinds that are not in the registry have accounts with keys of their own."""
    foreign = channels is not None and has_foreign_kinds(channels.value)
    person, known = person_format(), accounts()
    found: dict[str, Person] = {}
    taken: dict[tuple[str, str], str] = {}
    for name, entry in spot.entries(what="a mapping of names to what is known about them").items():
        if not name.strip():
            raise entry.wrong_key("a person needs a name")
        keys = entry.entries(what=PERSON_EXAMPLE)
        odd = {key: one for key, one in keys.items() if key not in person.keys}
        own = {key: one for key, one in odd.items() if foreign and isinstance(one.value, str)}
        person.check({key: one for key, one in keys.items() if key not in own}, entry)
        values = person.values(keys)
        theirs: dict[str, str] = {key: values.pop(key) for key in known if key in values}
        theirs |= {key: one.text("an account") for key, one in own.items()}
        found[name] = Person(name=name, accounts=theirs, **values)
        # Otherwise one account could count as two people, or be either of them.
        for key, account in theirs.items():
            same = account_key(account.strip()) if key == "email" else account
            other = taken.setdefault((key, same), name)
            if other != name:
                what = known.get(key, ChannelAccount(key=key)).what
                raise entry.child(key).wrong(f"{shown(other)} has the same {what}", "every person has one of their own")
    return found


@cache
def accounts() -> Mapping[str, ChannelAccount]:
    """The accounts that a person of any project may have, by key."""
    kinds = (built_in(name).account for name in BUILT_IN)
    return {
        **{one.key: one for one in kinds if one is not None},
        "slack": ChannelAccount(key="slack", what="Slack account"),
        "email": ChannelAccount(key="email", what="address"),
    }


PERSON_EXAMPLE = "a mapping such as {roles: [ops]}"


@cache
def person_format() -> MappingFormat:
    """What is written about a person, in any project."""
    own = {key: one for key, one in accounts().items() if key not in ("slack", "email")}
    return MappingFormat(
        {
            "roles": texts(text("a role"), "a list of roles").into(frozenset).about("Their roles."),
            **{key: one.format.about(f"Their {one.what}, in quotes.") for key, one in own.items()},
            "slack": text("a slack id").about("Their Slack id."),
            "email": text("an address").about(
                "Their email address. At sign-in, the OpenID account with this verified address is this person."
            ),
            "admin": FLAG.about("Whether they may halt execution and manage the keys of others on a server."),
        },
        what=PERSON_EXAMPLE,
    )


def _people_schema() -> dict[str, Any]:
    account = "Their account in a channel of another kind, under the key of that kind."
    person = {
        **person_format().schema,
        "additionalProperties": {"description": account, "type": "string", "pattern": r"\S"},
    }
    return {
        "description": "The people who may answer, by name.",
        "type": "object",
        "propertyNames": {"pattern": r"\S"},
        "additionalProperties": person,
    }


def _usual_people() -> dict[str, Any]:
    """The schema of people of a project without accounts of another kind."""
    return {"additionalProperties": {"propertyNames": {"enum": [*person_format().keys]}}}


_NO_PLUGINS = ("this allows nothing", "write the modules that may be imported: {allow: [mycompany.*]}")
_MODULES = matching(
    r"[\w*]+(\.[\w*]+)*(:[\w*]+(\.[\w*]+)*)?",
    "a module, such as mycompany.*",
    "{} is not a pattern of modules",
    "write it as in mycompany.*",
    name="modules",
)
PLUGINS = MappingFormat(
    {
        "allow": Format(
            lambda spot: each(_MODULES, "a list of modules").read(spot) if spot.value != [] else (),
            {"anyOf": [_MODULES, {"type": "array", "items": _MODULES}]},
        ).about("Modules, as in mycompany.*")
    },
    required={"allow": _NO_PLUGINS},
    description="The modules that toolsets and channels may be imported from. Built-in ones are always available.",
)
DEFAULTS = MappingFormat(
    {
        "toolset": toolset_entries.DEFAULTS.by(toolset_entries.default_entries),
        "worker": worker_keys.DEFAULTS.by(worker_keys.check_defaults),
        "channel": channel_entries.DEFAULTS,
    },
    what="a mapping with `worker`, `toolset` and `channel`",
    description="Defaults for every worker, toolset and channel.",
)
PROJECT = MappingFormat(
    {
        "policy": RULES,
        "people": DeferredFormat(_read_people, _people_schema),
        "model": text("the name of a model").about("The default model for workers, as in anthropic:claude-sonnet-5."),
        "store": text()
        .by(_read_store)
        .about("The store for approvals and runs: sqlite:FILE or postgresql://… ${NAME} comes from the environment."),
        "on_denied": worker_keys.ON_DENIED.about(
            "Whether a denial is told to the model (tell), or ends the run with an error (raise). Default: tell."
        ),
        "toolsets": TOOLSETS,
        "plugins": PLUGINS.by(_read_plugins),
        "defaults": DEFAULTS.by(_read_defaults),
        "locked": FLAG.about("Flags and the environment can tighten this file, but not loosen it."),
        "channels": CHANNELS,
        "agents": AGENTS,
        "server": SERVER,
    },
    advice=lambda key, known: foreign_hint(key) or did_you_mean(key, known),
    description="What the agents of a project may do, with which toolsets, and who answers.",
    schema={
        "anyOf": [{"required": ["policy"]}, {"required": ["toolsets"]}],
        # Only kinds of channels that are not in the registry have accounts with keys of their own.
        "if": {"properties": {"channels": ONLY_BUILT_IN}},
        "then": {"properties": {"people": DeferredFormat(_read_people, _usual_people)}},
    },
)
