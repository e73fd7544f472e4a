"""Convert a project of llm-do: to `signoff.yaml`, `workers/NAME.md`, and a report about each line.

Nothing is loosened: what llm-do runs unasked is allowed only if a rule can say exactly that or less. If that is not
certain, signoff asks about it, and the report says so.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from signoff.config.files import PROJECT_FILE
from signoff.config.llm_do.draft import ASK_DELEGATION, Imported, WorkerDraft
from signoff.config.llm_do.filesystem import BUILT_IN, READ_WRITE, filesystem_entry, sandbox_entry
from signoff.config.llm_do.import_text import project_text, worker_text
from signoff.config.llm_do.notes import Note, NoteKind
from signoff.config.llm_do.project_json import read_project
from signoff.config.llm_do.shell import shell_entry, shell_file_ops, shell_readonly
from signoff.config.llm_do.sources import Source, Sources, text_inside
from signoff.config.merge import NAME
from signoff.config.settings import load_settings
from signoff.config.worker_files import DIRECTORY, load_worker
from signoff.errors import Place, PolicyError, WrongFile
from signoff.policy.builtin import READ_TOOLS, WRITE_TOOLS
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue

_SHELLS = {"shell_readonly": shell_readonly, "shell_file_ops": shell_file_ops}
_DELEGATION = ("delegation", "agents", "workers")
_CREATION = ("dynamic_agents", "dynamic_workers")
_CLASSES = {
    "ShellToolset": "shell",
    "FileSystemToolset": "filesystem",
    "FileSystemSandbox": "filesystem",
    "DelegationToolset": "delegation",
    "AgentToolset": "delegation",
    "CustomToolset": "custom",
    "DynamicAgentsToolset": "dynamic_agents",
}
"""llm-do's toolset classes, if a file names one by its path."""
_NATIVE = {
    "web_search": ("search_context_size", "user_location", "blocked_domains", "allowed_domains", "max_uses"),
    "web_fetch": ("max_uses", "allowed_domains", "blocked_domains", "enable_citations", "max_content_tokens"),
    "code_execution": (),
}
_NATIVE_NAMES = {"url_context": "web_fetch"}
_OLD_TOOLS = {
    "sandbox.read": ["read_file", "list_files", "search_files"],
    "sandbox.list": ["list_files"],
    "sandbox.write": ["write_file", "edit_file"],
    "worker.call": ["worker_call"],
    "worker.create": ["worker_create"],
}
"""Tools of llm-do's first months, and signoff's names for them."""
_ONLY_OURS = ("edit_file", "search_files")
"""Tools that llm-do does not have, so none of its settings allows them."""
_TOOL = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
_FILE_CALL = re.compile(r"\{\{\s*file\(\s*(['\"])(?P<name>[^'\"{}]+)\1\s*\)\s*\}\}")
_PYTHON_FIX = "give it a name in toolsets.py beside signoff.yaml: TOOLSETS = {{{name!r}: FunctionToolset([…])}}"


def convert(sources: Sources) -> Imported:
    """Convert everything that can be carried over. signoff's own readers read the result before it is shown."""
    result = Imported(sources)
    names = {source.name for source in sources.workers}
    for source in list(sources.workers):
        try:
            result.drafts.append(_draft(source, names, result))
        except WrongFile as error:
            sources.refused[source.file] = error
    if sources.project is not None:
        read_project(sources.project, result)
    for file in sources.unlisted:
        what = "project.json does not name this file, so llm-do does not read it"
        result.notes.append(Note(NoteKind.LEFT, Place(file), what, "if it is needed, name it there and import again"))
    for directory in sources.others:
        what = "this directory has a project of its own"
        result.notes.append(Note(NoteKind.LEFT, Place(directory), what, f"signoff import llm-do {directory}"))
    _break_circles(result.drafts)
    for draft in result.drafts:
        _instructions(draft, sources)
        draft.text = worker_text(draft)
    result.files = {PROJECT_FILE: project_text(result)}
    result.files |= {f"{DIRECTORY}/{draft.name}.md": draft.text for draft in result.drafts}
    _check(result)
    return result


# --- one worker ---


def _draft(source: Source, names: set[str], result: Imported) -> WorkerDraft:
    draft = WorkerDraft(source)
    keys = source.keys
    for key, spot in keys.items():
        handler = _KEYS.get(key)
        if handler is not None:
            handler(draft, spot, names, result)
        elif key not in _PLAIN_KEYS:
            draft.say(NoteKind.LEFT, spot.key_place, f"unknown key {shown(key)}", "check what it was for")
    _sandbox(draft, result)
    _shell_rules(draft, result)
    return draft


def _toolsets(draft: WorkerDraft, spot: ConfigValue, names: set[str], result: Imported) -> None:
    value: object = spot.value
    if not value:
        return
    if isinstance(value, dict):
        for name, config in spot.entries().items():
            _toolset(draft, name, config, names, result, is_mapping=True)
        return
    for item in spot.items("a list of toolsets"):
        if isinstance(item.value, dict):
            for name, config in item.entries().items():
                _toolset(draft, name, config, names, result, is_mapping=True)
        else:
            _toolset(draft, item.text("the name of a toolset"), item, names, result, is_mapping=False)


def _toolset(
    draft: WorkerDraft, name: str, spot: ConfigValue, names: set[str], result: Imported, *, is_mapping: bool
) -> None:
    place = spot.key_place if is_mapping else spot.place
    config = dict(spot.entries(what="a mapping of settings")) if is_mapping and spot.value is not None else {}
    approvals = config.pop("_approval_config", None)
    kind = _CLASSES.get(re.split(r"[.:]", name)[-1], name)
    used: str = kind
    if kind in names:
        _delegate(draft, kind, spot, place)
        if is_mapping:
            _ask_delegation(draft)
        _leave(draft, config)
        used = "worker_call"
    elif kind in BUILT_IN:
        entry, notes = filesystem_entry(BUILT_IN[kind], config)
        draft.notes += notes
        if "sandbox" in draft.source.keys or "sandboxes" in draft.source.keys:
            return  # its directories say what can be accessed
        used = _add(draft, result, "filesystem", entry, place) if "policy" in entry or "config" in entry else ""
        used = used or (entry.get("use") or BUILT_IN[kind])
        _use(draft, used)
        draft.say(NoteKind.CARRIED, place, f"{shown(name)} is `{used}`")
    elif kind in _SHELLS:
        result.toolsets.setdefault(kind, _SHELLS[kind]())
        _use(draft, kind)
        draft.say(
            NoteKind.CARRIED,
            place,
            f"{shown(name)} is `{kind}` with llm-do's own list of commands; all others are refused",
        )
        _leave(draft, config)
    elif kind == "shell":
        entry, notes = shell_entry(config.pop("rules", None), config.pop("default", None))
        draft.notes += notes
        used = _add(draft, result, "shell", entry, place)
        _use(draft, used)
        draft.say(NoteKind.CARRIED, place, f"{shown(name)} is `{used}`")
        _leave(draft, config)
    elif kind in _DELEGATION:
        _delegation(draft, config, names)
        used = ""
    elif kind in _CREATION:
        draft.creates = True
        what = "`agent_create` is `worker_create`, `agent_call` is `worker_call`; each new worker is shown to a person"
        draft.say(NoteKind.CHANGED, place, f"{shown(name)} is `creates: true`: {what}")
        _leave(draft, config)
    else:
        _python_toolset(draft, kind, place, config, result)
        used = kind
    if approvals is not None and approvals.value is not None:
        _approvals(draft, approvals, used, result)


def _python_toolset(
    draft: WorkerDraft, name: str, place: Place, config: dict[str, ConfigValue], result: Imported
) -> None:
    """A toolset, or tools, written in Python: it keeps its name, so that its rules apply once it exists."""
    safe = name if re.fullmatch(NAME, name) else re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-") or "tools"
    _use(draft, safe)
    draft.needs_python = True
    tools = f" with {', '.join(config)}" if name == "custom" and config else ""
    what = f"{shown(name)} is written in Python{tools}, which the import does not read"
    draft.say(NoteKind.LEFT, place, what, _PYTHON_FIX.format(name=safe))
    if name != "custom":
        _leave(draft, config)
        return
    for tool, spot in config.items():
        if spot.value:
            _tool_rule(draft, [tool], spot, result, toolset=safe)


def _delegation(draft: WorkerDraft, config: dict[str, ConfigValue], names: set[str]) -> None:
    _ask_delegation(draft)
    for key, spot in config.items():
        if key == "allow_workers":
            _allow_workers(draft, spot, names)
        elif key == "worker_create":
            draft.creates = True
            what = "`worker_create` is `creates: true`; new workers are written to workers/"
            draft.say(NoteKind.CARRIED, spot.key_place, what)
        elif key == "worker_call":
            draft.say(NoteKind.CARRIED, spot.key_place, "`worker_call` comes with `delegates` or `creates`")
        elif key in names:
            _delegate(draft, key, spot, spot.key_place)
        else:
            _no_worker(draft, key, spot.key_place)


def _allow_workers(draft: WorkerDraft, spot: ConfigValue, names: set[str]) -> None:
    for item in spot.items("a list of workers") if spot.value else ():
        name = item.text("the name of a worker")
        if name == "*" or name in names:
            _delegate(draft, name, item, item.place)
        else:
            _no_worker(draft, name, item.place)


def _no_worker(draft: WorkerDraft, name: str, place: Place) -> None:
    what = f"there is no worker {shown(name)} among these files"
    draft.say(NoteKind.LEFT, place, what, f"import it too, and add it to `delegates` of workers/{draft.name}.md")


def _delegate(draft: WorkerDraft, name: str, spot: ConfigValue, place: Place) -> None:
    if name == draft.name:
        what = f"{name} calls itself; here a worker that is running cannot be called again"
        fix = "write a second worker with the same instructions for the level below, without `delegates`"
        draft.say(NoteKind.LEFT, place, what, fix)
        return
    draft.delegates[name] = spot
    draft.say(NoteKind.CARRIED, place, f"{shown(name)} is under `delegates`, and is called with `worker_call`")


def _ask_delegation(draft: WorkerDraft) -> None:
    """llm-do always asks about a call of another worker."""
    if ASK_DELEGATION not in draft.tightens:
        draft.tightens.append(ASK_DELEGATION)


def _native_tools(draft: WorkerDraft, spot: ConfigValue, _: set[str], result: Imported) -> None:
    for item in spot.items("a list of tools") if spot.value else ():
        keys = item.entries(what="a mapping with `tool_type`")
        wrote = str(keys["tool_type"].value) if "tool_type" in keys else ""
        kind = _NATIVE_NAMES.get(wrote, wrote)
        odd = [key for key in keys if key != "tool_type" and key not in _NATIVE.get(kind, ())]
        if kind not in _NATIVE or odd:
            why = (
                f"{shown(odd[0])} has no equivalent here" if kind in _NATIVE else f"the kind {shown(wrote)} is unknown"
            )
            fix = "add it in signoff.yaml: toolsets: {NAME: {use: native, config: {kind: …}, policy: […]}}"
            draft.say(NoteKind.LEFT, item.place, f"this tool was left out: {why}", fix)
            continue
        config = {"kind": kind, **{key: one.value for key, one in keys.items() if key != "tool_type"}}
        entry = {"use": "native", "config": config, "policy": [{"allow": kind}]}
        name = _add(draft, result, kind, entry, item.place)
        if name in draft.toolsets:
            draft.say(NoteKind.LEFT, item.place, f"{shown(kind)} is named twice", "keep one of them")
            continue
        _use(draft, name)
        what = f"{shown(kind)} is the toolset `{name}`, and is offered to the model as before: nobody is asked about it"
        draft.say(NoteKind.CARRIED, item.place, what)


def _approvals(draft: WorkerDraft, spot: ConfigValue, toolset: str, result: Imported) -> None:
    """Convert `_approval_config`: tools that run unasked."""
    for tool, entry in spot.entries(what="a mapping of tools").items():
        if not _TOOL.fullmatch(tool):
            _no_tool(draft, tool, entry)
            continue
        for key, said in entry.entries(what="a mapping such as {pre_approved: true}").items():
            if key == "pre_approved" and isinstance(said.value, bool):
                if said.value:
                    match: dict[str, Any] = {"tool": tool, "worker": draft.name}
                    if toolset and toolset != "worker_call":
                        match["toolset"] = toolset
                    result.policy.append({"allow": match})
                    draft.say(
                        NoteKind.CARRIED,
                        said.key_place,
                        f"{shown(tool)} runs without a question, only for {draft.name}",
                    )
            elif key == "blocked" and said.value is True:
                draft.tightens.append({"deny": {"tool": tool}})
                draft.say(NoteKind.CARRIED, said.key_place, f"{shown(tool)} is denied")
            else:
                draft.say(
                    NoteKind.LEFT, said.key_place, f"{shown(key)} has no equivalent here", "the tool is asked about"
                )


def _tool_rules(draft: WorkerDraft, spot: ConfigValue, _: set[str], result: Imported) -> None:
    python: list[str] = []
    for name, rule in spot.entries(what="a mapping of tools").items() if spot.value else ():
        if name == "shell":
            draft.say(NoteKind.CARRIED, rule.key_place, "the rules about commands decide")
            continue
        if name not in _OLD_TOOLS and name not in (*READ_TOOLS, *WRITE_TOOLS):
            python.append(name)
        _tool_rule(draft, _OLD_TOOLS.get(name, [name]), rule, result)
    if python and "custom_tools" not in draft.source.keys:
        _python_tools(draft, python, spot.key_place)


def _tool_rule(
    draft: WorkerDraft, tools: Sequence[str], rule: ConfigValue, result: Imported, *, toolset: str = ""
) -> None:
    keys = rule.entries(what="a mapping with `allowed` and `approval_required`")
    if not all(map(_TOOL.fullmatch, tools)):
        _no_tool(draft, tools[0], rule)
        return
    tool: Any = tools[0] if len(tools) == 1 else list(tools)
    said = ", ".join(map(shown, tools))
    if "allowed" in keys and not keys["allowed"].flag():
        draft.tightens.append({"deny": {"tool": tool}})
        draft.say(NoteKind.CARRIED, rule.key_place, f"{said} is denied")
    elif "approval_required" in keys and keys["approval_required"].flag():
        draft.tightens.append({"ask": {"tool": tool}})
        draft.say(NoteKind.CARRIED, rule.key_place, f"{said} is asked about")
    elif ("approval_required" in keys or "pre_approved" in keys) and "worker_create" not in tools:
        if "worker_call" in tools:
            draft.frees_delegation = True
            draft.say(
                NoteKind.CARRIED, rule.key_place, "calling another worker is allowed; each call it makes is judged"
            )
            return
        theirs = [one for one in tools if one not in _ONLY_OURS]
        match: dict[str, Any] = {"tool": theirs[0] if len(theirs) == 1 else theirs, "worker": draft.name}
        if toolset:
            match["toolset"] = toolset
        result.policy.append({"allow": match})
        draft.say(
            NoteKind.CARRIED,
            rule.key_place,
            f"{', '.join(map(shown, theirs))} runs without a question, only for {draft.name}",
        )
    else:
        draft.say(NoteKind.LEFT, rule.key_place, f"the setting for {said} has no equivalent here", "it is asked about")


def _no_tool(draft: WorkerDraft, name: str, spot: ConfigValue) -> None:
    """Report an invalid name of a tool: as a pattern it would match other tools."""
    draft.say(
        NoteKind.LEFT, spot.key_place, f"{shown(name)} is not the name of a tool", "name the tools that are meant"
    )


def _sandbox(draft: WorkerDraft, result: Imported) -> None:
    """Convert `sandbox: {paths: …}` and the older `sandboxes: …`."""
    keys = draft.source.keys
    paths: dict[str, ConfigValue] = {}
    if "sandboxes" in keys and keys["sandboxes"].value:
        paths |= keys["sandboxes"].entries(what="a mapping of directories")
    if "sandbox" in keys and keys["sandbox"].value:
        for key, spot in keys["sandbox"].entries(what="a mapping with `paths`").items():
            if key == "paths":
                paths |= spot.entries(what="a mapping of directories")
            else:
                draft.say(
                    NoteKind.LEFT, spot.key_place, f"{shown(key)} has no equivalent here", "see docs/guides/toolsets.md"
                )
    if not paths:
        if "sandbox" in keys or "sandboxes" in keys:
            _use(draft, READ_WRITE)
        return
    entry, notes = sandbox_entry(paths)
    draft.notes += notes
    if entry:
        spot = next(iter(paths.values()))
        _use(draft, _add(draft, result, "files", entry, spot.key_place))


def _shell_rules(draft: WorkerDraft, result: Imported) -> None:
    """Convert `shell_rules` and `shell_default` of llm-do's first months."""
    keys = draft.source.keys
    if "shell_rules" not in keys and "shell_default" not in keys:
        return
    entry, notes = shell_entry(keys.get("shell_rules"), keys.get("shell_default"))
    draft.notes += notes
    place = keys[next(key for key in ("shell_rules", "shell_default") if key in keys)].key_place
    _use(draft, _add(draft, result, "shell", entry, place))


def _custom_tools(draft: WorkerDraft, spot: ConfigValue, _: set[str], result: Imported) -> None:
    if not spot.value:
        return
    _python_tools(draft, [str(item.value) for item in spot.one_or_more("a list of tools")], spot.key_place)


def _python_tools(draft: WorkerDraft, tools: Sequence[str], place: Place) -> None:
    name = f"{draft.name}_tools"
    _use(draft, name)
    draft.needs_python = True
    what = f"{', '.join(map(shown, tools))}: written in Python, which the import does not read"
    draft.say(NoteKind.LEFT, place, what, _PYTHON_FIX.format(name=name))


def _schema_ref(draft: WorkerDraft, spot: ConfigValue, _: set[str], result: Imported) -> None:
    key = str(spot.trail[-1])
    ours = "output" if key.startswith("output") else "input"
    fix = f"write the JSON schema of that class (its `model_json_schema()`) under `{ours}:` in workers/{draft.name}.md"
    draft.say(NoteKind.LEFT, spot.key_place, f"{shown(key)} names a Python class, which the import does not read", fix)


def _compatible_models(draft: WorkerDraft, spot: ConfigValue, _: set[str], result: Imported) -> None:
    if spot.value:
        patterns = ", ".join(str(item.value) for item in spot.one_or_more("a list of models"))
        what = f"signoff does not check which models are compatible ({patterns})"
        draft.say(NoteKind.LEFT, spot.key_place, what, f"write `model:` in workers/{draft.name}.md")


def _attachment_policy(draft: WorkerDraft, spot: ConfigValue, _: set[str], result: Imported) -> None:
    if spot.value:
        what = "the number and kinds of attached files cannot be limited here; one may have 10 MB, all 25 MB"
        draft.say(NoteKind.LEFT, spot.key_place, what)


def _top_workers(draft: WorkerDraft, spot: ConfigValue, names: set[str], result: Imported) -> None:
    if spot.value:
        _ask_delegation(draft)
    _allow_workers(draft, spot, names)


def _entry_mark(draft: WorkerDraft, spot: ConfigValue, _: set[str], result: Imported) -> None:
    if spot.value is True:
        result.start = result.start or (draft.name, "")
        draft.say(NoteKind.CARRIED, spot.key_place, f"it is started by its name: signoff run {draft.name}")


def _lock(draft: WorkerDraft, spot: ConfigValue, _: set[str], result: Imported) -> None:
    if spot.value is True:
        what = "in llm-do a model cannot overwrite a locked worker; here it cannot overwrite any worker"
        draft.say(NoteKind.CARRIED, spot.key_place, what)


_PLAIN_KEYS = ("name", "description", "model", "instructions", "sandbox", "sandboxes", "shell_rules", "shell_default")
_KEYS = {
    "toolsets": _toolsets,
    "tools": _custom_tools,
    "custom_tools": _custom_tools,
    "server_side_tools": _native_tools,
    "compatible_models": _compatible_models,
    "input_model_ref": _schema_ref,
    "schema_in_ref": _schema_ref,
    "output_schema_ref": _schema_ref,
    "allow_workers": _top_workers,
    "tool_rules": _tool_rules,
    "attachment_policy": _attachment_policy,
    "entry": _entry_mark,
    "locked": _lock,
}


def _leave(draft: WorkerDraft, config: dict[str, ConfigValue]) -> None:
    for key, spot in config.items():
        draft.say(NoteKind.LEFT, spot.key_place, f"{shown(key)} has no equivalent here", "check what it was for")


def _use(draft: WorkerDraft, name: str) -> None:
    if name not in draft.toolsets:
        draft.toolsets.append(name)


def _add(draft: WorkerDraft, result: Imported, kind: str, entry: dict[str, Any], place: Place) -> str:
    """Add an entry to the catalog, named after its worker; an equal entry is reused."""
    for name, there in result.toolsets.items():
        if there == entry:
            return name
    name = f"{draft.name}_{kind}"
    while name in result.toolsets:
        name += "_2"
    result.toolsets[name] = entry
    draft.say(NoteKind.CARRIED, place, f"its configuration is `toolsets: {{{name}: …}}` in signoff.yaml")
    return name


# --- the instructions ---


def _instructions(draft: WorkerDraft, sources: Sources) -> None:
    """The instructions, with included files, and a sentence about tools that are called differently here."""
    source = draft.source
    text = source.body or _prompt_file(draft, sources)
    text = _FILE_CALL.sub(lambda found: _included(found, draft, sources), text)
    if "{{" in text:
        line = text[: text.index("{{")].count("\n") + source.body_line if source.body_line else 0
        what = "double braces mark a field of the input here, so they were changed to `{ {` and `} }`"
        draft.say(NoteKind.CHANGED, Place(source.file, line), what, "where a field is meant, write double braces again")
        text = text.replace("{{", "{ {").replace("}}", "} }")
    called = [name for name in draft.delegates if name != "*" and re.search(rf"\b{re.escape(name)}\b", text)]
    if called and "worker_call" not in text:
        at = min(text.index(name) for name in called)
        line = text[:at].count("\n") + source.body_line if source.body_line else 0
        listed = ", ".join(f"`{name}`" for name in called)
        what = f"{listed}: there is no such tool here; a sentence about `worker_call` was added to the instructions"
        draft.say(NoteKind.CHANGED, Place(source.file, line), what)
        text += f"\n\nCall {listed} with the tool `worker_call(worker, prompt)`."
    if not text:
        draft.say(NoteKind.LEFT, Place(source.file), "there are no instructions", "write them below the keys")
    draft.text = text


def _included(found: re.Match[str], draft: WorkerDraft, sources: Sources) -> str:
    """The text of a file that the instructions include, relative to the worker's file."""
    name = found["name"]
    source = draft.source
    file = os.path.normpath(os.path.join(os.path.dirname(source.file), name))
    line = source.body[: source.body.find(found[0])].count("\n") + source.body_line if source.body_line else 0
    try:
        text = text_inside(file, sources)
    except WrongFile as error:
        fix = f"write its text into workers/{draft.name}.md"
        draft.say(NoteKind.LEFT, Place(source.file, line), f"{shown(name)} could not be included: {error.what}", fix)
        return f"(the text of {name} belongs here)"
    draft.say(NoteKind.CARRIED, Place(source.file, line), f"{shown(name)} was written into the instructions")
    return text.strip()


def _prompt_file(draft: WorkerDraft, sources: Sources) -> str:
    """The instructions, if they are not in the worker file: from `prompts/NAME.txt` and the like, as in llm-do."""
    directory = os.path.dirname(draft.source.file)
    for base in dict.fromkeys((directory, os.path.dirname(directory), sources.directory)):
        for suffix in (".txt", ".jinja2", ".j2", ".md"):
            file = os.path.join(base, "prompts", draft.name + suffix)
            if os.path.lexists(file):
                text = text_inside(file, sources)
                draft.say(NoteKind.CARRIED, Place(file), f"these are the instructions of {draft.name}")
                return text.strip()
    return ""


def _break_circles(drafts: Sequence[WorkerDraft]) -> None:
    """Remove delegations that form a cycle: signoff refuses them."""
    by_name = {draft.name: draft for draft in drafts}
    for draft in drafts:
        for name in list(draft.delegates):
            if draft.name in _reached(name, by_name):
                spot = draft.delegates.pop(name)
                what = f"{name} calls {draft.name} in turn; workers cannot call each other in a cycle here"
                draft.say(NoteKind.LEFT, spot.place, what, "write a second worker for the level below")


def _reached(start: str, by_name: dict[str, WorkerDraft]) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name not in found and name in by_name:
            found.add(name)
            todo += by_name[name].delegates
    return found


def _check(result: Imported) -> None:
    """Read the result with signoff's own readers; an error in a worker refuses its file."""
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, DIRECTORY))
        for name, text in result.files.items():
            with open(os.path.join(directory, *name.split("/")), "w", encoding="utf-8") as out:
                out.write(text)
        settings = load_settings(os.path.join(directory, PROJECT_FILE))
        for draft in list(result.drafts):
            try:
                load_worker(settings, draft.name)
            except PolicyError as error:
                result.refused[draft.source.file] = WrongFile(
                    f"the converted file is not valid: {error.what}", place=Place(draft.source.file), fix=error.fix
                )
                result.drafts.remove(draft)
                del result.files[f"{DIRECTORY}/{draft.name}.md"]


def all_notes(result: Imported) -> Iterator[Note]:
    """All notes, by file and line."""
    notes = [*(note for draft in result.drafts for note in draft.notes), *result.notes]
    yield from sorted(notes, key=lambda note: (note.place.file, note.place.line, note.place.column))
