"""Convert llm-do's `project.json`."""

from __future__ import annotations

from typing import Any

from signoff.config.llm_do.draft import Imported
from signoff.config.llm_do.notes import Note, NoteKind
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue


def read_project(spot: ConfigValue, result: Imported) -> None:
    """Convert `project.json`, and report what happened to each key."""
    for key, value in spot.entries().items():
        match key:
            case "version" if value.value == 1:
                pass
            case "version":
                _note(
                    result,
                    NoteKind.LEFT,
                    value,
                    f"format version {value.value} is unknown",
                    "check the result",
                )
            case "runtime":
                _runtime(value, result)
            case "entry":
                _entry(value, result)
            case "agent_files" | "worker_files":
                pass  # these files have been read already
            case "python_files":
                listed = (
                    ", ".join(str(item.value) for item in value.one_or_more("a list of files")) if value.value else ""
                )
                if listed:
                    _note(
                        result,
                        NoteKind.LEFT,
                        value,
                        f"{listed}: written in Python, which the import does not read",
                        "offer its toolsets in toolsets.py beside signoff.yaml (docs/guides/catalog.md)",
                    )
            case "generated_agents_dir" | "generated_workers_dir":
                _note(
                    result, NoteKind.CHANGED, value, "new workers are written to workers/, after a person approved them"
                )
            case "allow_cli_input":
                _note(result, NoteKind.LEFT, value, "the prompt of `signoff run` cannot be switched off")
            case _:
                _note(result, NoteKind.LEFT, value, f"unknown key {shown(key)}", "check what it was for")


def _runtime(spot: ConfigValue, result: Imported) -> None:
    for key, value in spot.entries(what="an object with settings").items():
        match key:
            case "approval_mode" if value.value == "prompt":
                _note(
                    result,
                    NoteKind.CARRIED,
                    value,
                    "`prompt` is what signoff always does: rules decide, and people answer",
                )
            case "approval_mode":
                mode = {"approve_all": "auto_approve", "reject_all": "auto_deny"}.get(str(value.value), "")
                fix = f"signoff run … --mode {mode}, for one run" if mode else ""
                _note(result, NoteKind.LEFT, value, f"{shown(str(value.value))} cannot be set in a project", fix)
            case "max_depth":
                result.depth = value.count()
                what = f"`max_depth` is `defaults: {{worker: {{limits: {{depth: {result.depth}}}}}}}`"
                _note(result, NoteKind.CARRIED, value, what)
            case "return_permission_errors":
                _note(
                    result,
                    NoteKind.CHANGED,
                    value,
                    "a model is always told why a call was refused, and the run continues",
                )
            case "agent_calls_require_approval" | "worker_calls_require_approval":
                if value.value is True:
                    result.policy.append({"ask": {"tool": "worker_call"}})
                    _note(result, NoteKind.CARRIED, value, "`worker_call` is asked about")
            case "agent_attachments_require_approval" | "worker_attachments_require_approval":
                if value.value is True:
                    result.policy.insert(0, _attached_rule({}))
                    _note(result, NoteKind.CARRIED, value, "`worker_call` with attachments is asked about")
            case "agent_approval_overrides" | "worker_approval_overrides":
                _overrides(value, result)
            case _:
                _note(result, NoteKind.LEFT, value, f"unknown key {shown(key)}", "check what it was for")


def _overrides(spot: ConfigValue, result: Imported) -> None:
    for worker, entry in spot.entries(what="an object of workers").items() if spot.value else ():
        for key, value in entry.entries(what="an object with settings").items():
            if value.value is True and key == "calls_require_approval":
                result.policy.insert(0, {"ask": {"tool": "worker_call", "args": {"worker": worker}}})
                _note(result, NoteKind.CARRIED, value, f"calling {shown(worker)} is asked about")
            elif value.value is True and key == "attachments_require_approval":
                result.policy.insert(0, _attached_rule({"worker": worker}))
                _note(result, NoteKind.CARRIED, value, f"calling {shown(worker)} with attachments is asked about")
            else:
                fix = "write a rule of your own, above the one that asks"
                _note(result, NoteKind.LEFT, value, f"settings that loosen {shown(worker)} are not carried over", fix)


def _attached_rule(args: dict[str, Any]) -> dict[str, Any]:
    return {"ask": {"tool": "worker_call", "args": {**args, "attachments": {"exists": True}}}}


def _entry(spot: ConfigValue, result: Imported) -> None:
    keys = spot.entries(what="an object with `agent` and `args`")
    named = next((keys[key] for key in ("agent", "name", "worker") if key in keys), None)
    given = next((keys[key] for key in ("args", "input") if key in keys), None)
    if named is not None and named.value not in {draft.name for draft in result.drafts}:
        _note(
            result,
            NoteKind.LEFT,
            named,
            f"{shown(str(named.value))} is not among these workers",
            "start it from Python",
        )
        return
    said = given.entries().get("input") if given is not None and given.value else None
    prompt = said.value if said is not None and isinstance(said.value, str) else ""
    if named is not None:
        result.start = (str(named.value), prompt)
    elif result.start is not None:
        result.start = (result.start[0], prompt)
    for key, value in keys.items():
        if key not in ("agent", "name", "worker", "args", "input"):
            _note(result, NoteKind.LEFT, value, f"{shown(key)} has no equivalent here", "start it from Python")
    if result.start is not None:
        _note(result, NoteKind.CARRIED, spot, f"it is started by name: signoff run {result.start[0]}")


def _note(result: Imported, kind: NoteKind, spot: ConfigValue, what: str, fix: str = "") -> None:
    result.notes.append(Note(kind, spot.key_place, what, fix))
