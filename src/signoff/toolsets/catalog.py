"""The catalog: toolsets by name, and how to build one with its policy for a worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import Any, cast

from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, PrefixedToolset, WrapperToolset

from signoff.attached.attached_policies import check_attributes, check_tool_names, layer_for
from signoff.attached.marks import mark, other_entry, unmarked_class
from signoff.config import Settings, ToolsetEntry, worker_names
from signoff.config.config_check import GivenConfig, shape_of
from signoff.config.llm_do_words import FOREIGN_TOOLSETS, foreign_hint
from signoff.config.plugin_code import load_offered, load_path, offered
from signoff.config.variables import filled_config
from signoff.config.worker_keys import is_class_path, named_entry
from signoff.errors import SignoffError, WrongFile, WrongUse
from signoff.policy.document import document_of
from signoff.policy.engine import Policy
from signoff.policy.phrases import did_you_mean, nearest, shown
from signoff.policy.placed_value import ConfigValue
from signoff.toolsets.builtin.files.file_toolset import FilesToolset
from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset
from signoff.toolsets.builtin_toolsets import (
    BUILTINS,
    NEED_ENTRY,
    Directory,
    filesystem_ro,
    filesystem_rw,
    shell_file_ops,
    shell_readonly,
)
from signoff.toolsets.code_loader import PROJECT_CODE, ProjectCode, approvals_layer, load_project
from signoff.toolsets.context import CONTEXTS, Context, ToolsetContext
from signoff.toolsets.factory import Made, create
from signoff.toolsets.mcp import McpServer, mcp_server
from signoff.toolsets.native_tools import native_tool

GROUP = "signoff.toolsets"
"""The entry point group by which installed packages (plugins) offer toolsets."""
MCP, NATIVE = "mcp", "native"
INNER = "inner_class"
"""The config key that names another class to create the toolset from."""


def filesystem(
    root: Directory = ".",
    *,
    read_only: bool = False,
    id: str = "filesystem",
    max_bytes: int = 10_000_000,
    max_chars: int = 50_000,
    max_results: int = 500,
) -> AbstractToolset[Any]:
    """`filesystem_ro` or `filesystem_rw`, chosen by a flag."""
    make = filesystem_ro if read_only else filesystem_rw
    return make(root, id=id, max_bytes=max_bytes, max_chars=max_chars, max_results=max_results)


_SHELLS = (shell_readonly, shell_file_ops)
PROGRAMS = "programs"
"""The config key of a shell that names directories of programs."""
ALIASES: Mapping[str, Callable[..., Any]] = {**BUILTINS, "filesystem": filesystem, MCP: mcp_server}


@dataclass(frozen=True, kw_only=True)
class BuiltToolset:
    """A toolset of the catalog, built for one worker."""

    name: str
    toolset: AbstractToolset[Any] | None
    """The toolset with its policy attached; None for a native tool, which the model's provider runs."""
    native: tuple[AbstractNativeTool, ...] = ()
    policy: Policy | None = None
    """The rules of its entry. They are attached to a toolset; for a native tool they have to be passed to the gate."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values of variables in its config, to be masked wherever calls are shown."""


_WORKER = "worker:"
_DELEGATES = (
    "workers are not a toolset: `delegates: [NAME]` in a worker's file lets it call others, `creates: true` lets it "
    "create new ones"
)
_SHELLS_HERE = (
    "`shell_readonly` runs commands that only read and denies those that write, `shell_file_ops` asks about the rest"
)
_ELSEWHERE = {
    "bash": _SHELLS_HERE,
    "filesystem_readonly": "did you mean `filesystem_ro`?",
    "shell": _SHELLS_HERE,
    "terminal": _SHELLS_HERE,
    "workers": _DELEGATES,
}
"""Names that people know from other programs, and what to write here. Names of llm-do have a table of their own."""


class Catalog:
    """The toolsets of a project by name: built-ins, entries of its file, its toolsets.py, and installed plugins."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    # what there is

    def names(self) -> list[str]:
        """Every name a worker may use. Runs the project's toolsets.py; imports no plugin."""
        return sorted({*BUILTINS, *self.settings.toolsets, *self._project, *self._offered})

    def check(self, name: str, spot: ConfigValue | None = None) -> None:
        """Raise, with the place, if there is no toolset of that name, or nothing that its entry uses.

        Runs the project's toolsets.py if the name is in no other place; imports no plugin.
        """
        entry = self._entry(name, spot)
        use = entry.use
        if ":" in use or use == NATIVE or use in ALIASES or use in self._offered or use in self._project:
            return
        raise self._unknown_use(entry)

    def origin(self, name: str) -> str:
        """Where a name comes from, for people."""
        entry = self.settings.toolsets.get(name)
        if entry is not None:
            place = entry.spot.key_place
            return f"{os.path.basename(place.file)}:{place.line}, use: {entry.use}"
        if name in ALIASES:
            return "built in"
        if name in self._project:
            return PROJECT_CODE
        if name in self._offered:
            return "; ".join(map(_offer, self._offered[name]))
        raise self._unknown(name, None)

    @cached_property
    def programs(self) -> tuple[str, ...]:
        """Real paths of the directories from which entries of the project's file let shells run programs by name."""
        entries = [entry for entry in self.settings.toolsets.values() if ALIASES.get(entry.use) in _SHELLS]
        named = [one for entry in entries for one in cast("Any", entry.config.get(PROGRAMS) or ())]
        paths = (os.path.realpath(os.path.join(self.settings.directory, one)) for one in named if isinstance(one, str))
        return tuple(dict.fromkeys(path for path in paths if os.path.isdir(path)))

    @property
    def _project(self) -> Mapping[str, object]:
        return self._code.toolsets

    @cached_property
    def _code(self) -> ProjectCode:
        taken = dict.fromkeys((*ALIASES, NATIVE), "a built-in")
        taken |= dict.fromkeys(self.settings.toolsets, f"an entry of {self.settings.file}")
        return load_project(self.settings.directory, taken, beside=self.settings.file)

    @cached_property
    def _offered(self) -> Mapping[str, Sequence[EntryPoint]]:
        return offered(GROUP)

    # making one

    def build(
        self, name: str, context: ToolsetContext | None = None, *, spot: ConfigValue | None = None
    ) -> BuiltToolset:
        """Build the toolset of that name for one worker. `spot` is where the worker names it, for errors."""
        entry = self._entry(name, spot)
        given = self._given(entry, direct=name not in self.settings.toolsets)
        target, given = self._swapped(self._target(entry), given)
        if target is NATIVE:
            tool = native_tool(given)
            return BuiltToolset(name=name, toolset=None, native=(tool,), policy=entry.policy, secrets=given.secrets)
        if target in ALIASES.values():
            given = self._from_project(target, given)
        created = create(target, given, self._context(context), name)
        made = created.toolset
        if isinstance(made, FilesToolset):
            made.guard(self.programs)
        elif isinstance(made, ShellToolset):
            made.guarded = tuple(dict.fromkeys((*made.programs, *self.programs)))
        if isinstance(made, McpServer):
            made = replace(made, labelled=tuple(entry.labels), secrets=given.secrets)
        marked = self._marked(replace(created, toolset=made), entry, given)
        toolset = marked.prefixed(entry.prefix) if entry.prefix else marked
        return BuiltToolset(name=name, toolset=toolset, policy=entry.policy, secrets=given.secrets)

    def _marked(self, made: Made, entry: ToolsetEntry, given: GivenConfig) -> AbstractToolset[Any]:
        """Attach the policies of the entry, of TOOLSET_APPROVALS, and of the registrations to a toolset."""
        name, toolset = entry.name, made.toolset
        try:
            check_attributes(toolset)
        except SignoffError as error:
            raise given.wrong_use(str(error), "write allow, ask, deny, or a list of rules") from None
        by_name = self._code.approvals.get(entry.use, ()) if _is_plain(entry.use) else ()
        layers = [
            layer_for(toolset, entry.policy, name=name, labels=entry.labels, config=given.values, by_catalog=True),
            *(approvals_layer(toolset, one, name, self._code.place) for one in by_name),
            *made.registered(name, by_catalog=True),
        ]
        if (other := other_entry(toolset, layers)) is not None:
            what = f"it is the same object as {shown(other)}, which has its own policy"
            raise given.wrong_use(
                what, "put a function that creates the toolset into TOOLSETS, so that each name has its own"
            )
        marked = mark(toolset, *layers)
        try:
            check_tool_names(marked)
        except SignoffError as error:
            raise given.wrong_use(str(error), "name its tools as they are") from None
        return marked

    def build_all(
        self, names: Iterable[str | ConfigValue], context: ToolsetContext | None = None
    ) -> tuple[BuiltToolset, ...]:
        """Build the toolsets of one worker. Names may be given with the place where they are written.

        Raises if two tools have the same name, as far as names are known before a run.
        """
        spots = {
            one.text("the name of a toolset") if isinstance(one, ConfigValue) else one: one
            if isinstance(one, ConfigValue)
            else None
            for one in names
        }
        built = tuple(self.build(name, context, spot=spot) for name, spot in spots.items())
        check_names(built, spots)
        return built

    def target(self, name: str) -> object:
        """The class, function or instance behind a name, or the class that `inner_class` replaces it with."""
        entry = self._entry(name, None)
        found = self._target(entry)
        if INNER not in entry.config:
            return found
        return self._swapped(found, self._given(entry, direct=False))[0]

    def entry(self, name: str) -> ToolsetEntry:
        """The entry of the project's file for a name, or a default entry if the file has none."""
        return self._entry(name, None)

    def _entry(self, name: str, spot: ConfigValue | None) -> ToolsetEntry:
        found = self.settings.toolsets.get(name)
        if found is not None:
            return found
        if name in NEED_ENTRY:
            raise _at(spot, f"{shown(name)} needs an entry of its own", f"write toolsets: {{NAME: {{use: {name}, …}}}}")
        if name not in BUILTINS and name not in self._offered and name not in self._project:
            raise self._unknown(name, spot)
        where = spot or ConfigValue.top(document_of(name, file=f"<{name}>"))
        return ToolsetEntry(name=name, use=name, spot=where)

    def _unknown(self, name: str, spot: ConfigValue | None) -> SignoffError:
        if is_class_path(name) and not name.startswith(_WORKER):
            fix = f"give it a name in signoff.yaml: {named_entry(name)}"
            return _at(spot, f"{shown(name)} is a class path; workers use names", fix)
        return _at(spot, f"there is no toolset {shown(name)}", self._suggested(name, self.names()))

    def _suggested(self, name: str, known: Iterable[str]) -> str:
        """What to write instead of an unknown name, including names known from other programs."""
        word = name.removeprefix(_WORKER).lstrip("_")
        if name.startswith(_WORKER) or word in worker_names(self.settings):
            return f"a worker is called by `delegates: [{word}]` in the file of the one that calls it"
        close = nearest(word, {*known, *_ELSEWHERE, *FOREIGN_TOOLSETS}) or ""
        return _ELSEWHERE.get(close) or foreign_hint(close) or did_you_mean(word, known)

    def _target(self, entry: ToolsetEntry) -> object:
        """What `use` refers to."""
        use, wrong = entry.use, GivenConfig(owner=entry.name, values={}, spot=entry.spot).wrong_use
        if use == NATIVE:
            return NATIVE
        if use in ALIASES:
            return ALIASES[use]
        if ":" in use:
            return load_path(use, self.settings.plugins, self.settings.directory, wrong)
        if use in self._project:
            return self._project[use]
        if use in self._offered:
            return load_offered(self._offered[use], self.settings.plugins, self.settings.directory, wrong)
        raise self._unknown_use(entry)

    def _unknown_use(self, entry: ToolsetEntry) -> SignoffError:
        known = {*ALIASES, NATIVE, *self._project, *self._offered}
        wrong = GivenConfig(owner=entry.name, values={}, spot=entry.spot).wrong_use
        return wrong(f"there is no toolset {shown(entry.use)}", self._suggested(entry.use, known))

    def _given(self, entry: ToolsetEntry, *, direct: bool) -> GivenConfig:
        values = filled_config(entry)
        hint = f"write an entry: toolsets: {{{entry.name}: {{use: {entry.use}, config: {{…}}}}}}" if direct else ""
        return GivenConfig(
            owner=entry.name,
            values=values.value,
            spot=entry.spot,
            spots=entry.config_spots,
            secrets=values.secrets,
            hint=hint,
        )

    def _swapped(self, target: object, given: GivenConfig) -> tuple[object, GivenConfig]:
        """Apply `inner_class` of the config: it replaces the toolset's class, or is passed on if that takes it."""
        if INNER not in given.values or target is NATIVE:
            return target, given
        path = given.values[INNER]
        if not isinstance(path, str) or ":" not in path:
            raise given.wrong("this should be a class path", at=(INNER,), fix="write package.module:Class")

        def wrong(what: str, fix: str) -> SignoffError:
            if given.shown(path) != shown(path):  # the path holds a secret: show no part of it
                what, fix = "the class that the variable names cannot be used", "write package.module:Class here"
            return given.wrong(what, at=(INNER,), fix=fix)

        inner = load_path(path, self.settings.plugins, self.settings.directory, wrong)
        if not isinstance(inner, type) or not issubclass(inner, AbstractToolset):
            raise wrong(f"{shown(path)} is not a toolset class", "a toolset is a pydantic_ai.toolsets.AbstractToolset")
        if callable(target) and INNER in shape_of(target, CONTEXTS).parameters:
            return target, given.with_values({**given.values, INNER: inner})
        return cast("type[AbstractToolset[Any]]", inner), given.with_values(
            {key: value for key, value in given.values.items() if key != INNER}
        )

    def _from_project(self, target: object, given: GivenConfig) -> GivenConfig:
        """Resolve relative paths of built-ins against the project's directory, not the working directory."""
        values, directory = dict(given.values), self.settings.directory
        if target is not BUILTINS["sql"] and target is not mcp_server:
            root = values.get("root", ".")
            values["root"] = os.path.join(directory, os.path.expanduser(root)) if isinstance(root, str) else root
        if target in _SHELLS and isinstance(programs := values.get(PROGRAMS), list):
            values[PROGRAMS] = [self._directory(one, at, given) for at, one in enumerate(cast("list[Any]", programs))]
        url = values.get("url")
        if target is BUILTINS["sql"] and isinstance(url, str) and url.startswith("sqlite:"):
            values["url"] = f"sqlite:{os.path.join(directory, url.removeprefix('sqlite:'))}"
        return given.with_values(values)

    def _directory(self, named: Any, at: int, given: GivenConfig) -> Any:
        """Check a directory of `programs`: it must exist, be relative to the project, and have no `..`."""
        if not isinstance(named, str):
            return named
        place = (PROGRAMS, at)
        if not named or named.startswith(("/", "~")) or os.pardir in named.split("/"):
            raise given.wrong("this should be a directory of the project", at=place, fix="write it as in .venv/bin")
        path = os.path.join(self.settings.directory, named)
        if not os.path.isdir(path):
            fix = "create it, or remove it here; directories start from the project's"
            raise given.wrong(f"there is no directory {given.shown(named)}", at=place, fix=fix)
        return path

    def _context(self, context: ToolsetContext | None) -> ToolsetContext:
        found = context if context is not None else Context()
        if not isinstance(found, Context):
            return found
        return replace(found, catalog=found.catalog or self, workspace=found.workspace or self.settings.directory)


def _offer(one: EntryPoint) -> str:
    package = f"package {one.dist.name} {one.dist.version}, " if one.dist is not None else ""
    return f"{package}{one.value}"


def _is_plain(use: str) -> bool:
    """Whether `use` is a name that is neither built in nor a class path."""
    return ":" not in use and use not in ALIASES and use != NATIVE


def _at(spot: ConfigValue | None, what: str, fix: str) -> SignoffError:
    if spot is not None:
        return WrongFile(what, place=spot.place, fix=fix)
    return WrongUse(f"{what}\n  {fix}" if fix else what)


def check_names(built: Sequence[BuiltToolset], spots: Mapping[str, ConfigValue | None] | None = None) -> None:
    """Raise if two tools have the same name. Tools that a server lists only at run time are checked during the run.

    `spots` say where the worker names its toolsets.
    """
    owner: dict[str, str] = {}
    for one in built:
        for tool in known_tools(one):
            if (other := owner.setdefault(tool, one.name)) != one.name:
                fix = f"leave one of the two out, or give one a prefix: toolsets: {{{one.name}: {{prefix: …}}}}"
                what = f"{shown(other)} and {shown(one.name)} both have a tool {shown(tool)}"
                raise _at(spots.get(one.name) if spots is not None else None, what, fix)


def known_tools(built: BuiltToolset) -> tuple[str, ...]:
    """The names of a toolset's tools, as far as they are known before a run."""
    prefix, toolset = "", built.toolset
    while isinstance(toolset, WrapperToolset):
        if isinstance(toolset, PrefixedToolset):
            prefix = f"{prefix}{toolset.prefix}_"
        elif unmarked_class(type(toolset)) is not WrapperToolset:
            return ()
        toolset = toolset.wrapped
    return tuple(f"{prefix}{name}" for name in toolset.tools) if isinstance(toolset, FunctionToolset) else ()
