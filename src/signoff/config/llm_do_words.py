"""Words of llm-do that people write into signoff's files out of habit, and what to write instead."""

from __future__ import annotations

import os

from signoff.policy.phrases import shown

SUFFIXES = (".worker", ".agent")
"""The suffixes of llm-do's worker files."""

_OURS = {
    "server_side_tools": "a toolset of signoff.yaml: {use: native, config: {kind: web_search}}",
    "_approval_config": "`policy:`, as in {allow: {tool: NAME}}",
    "approval_mode": "--mode of `signoff run` (interactive, auto_approve, auto_deny)",
    "approval_required": "a rule: ask, or allow where it is false",
    "pre_approved": "a rule: {allow: {tool: NAME}}",
    "max_depth": "`limits: {depth: N}` of a worker, or `defaults: {worker: {limits: {depth: N}}}`",
    "entry": "NAME in `signoff run NAME`",
    "allow_workers": "`delegates:` of a worker",
    "base_path": "`root` in the config of a toolset",
    "read_approval": "a rule: {ask: fs.read}",
    "write_approval": "a rule: {ask: fs.write}",
    "sandbox": "a toolset of signoff.yaml with rules about paths",
    "sandboxes": "a toolset of signoff.yaml with rules about paths",
    "shell_rules": "a toolset of signoff.yaml: {use: shell_file_ops, policy: [{allow: {tool: shell, command: …}}]}",
    "shell_default": "the last rule of a shell toolset, or nothing: what no rule names is asked about",
    "tool_rules": "`policy:`, with one rule for each tool",
    "custom_tools": "a toolset in toolsets.py beside signoff.yaml",
    "tools": "a toolset in toolsets.py beside signoff.yaml",
    "compatible_models": "`model:` of a worker; which models fit is not checked",
    "input_model_ref": "`input:` of a worker, a JSON schema",
    "schema_in_ref": "`input:` of a worker, a JSON schema",
    "output_schema_ref": "`output:` of a worker, a JSON schema",
    "agent_files": "the files in workers/",
    "worker_files": "the files in workers/",
    "python_files": "toolsets.py beside signoff.yaml, or `plugins: {allow: [MODULE]}`",
    "runtime": "flags of `signoff run`, and `defaults:`",
    "rules": '`policy:` of a toolset, beside its `config`: [{allow: {tool: shell, command: "ls *"}}]',
    "pattern": 'a rule on `command`: {allow: {tool: shell, command: "ls *"}}',
    "default": "the last rule of a toolset's `policy:` ({otherwise: deny}), or nothing: then no match asks",
    "ToolsetRegistration": "`Registration` of signoff.toolsets",
}
_TOOLSETS = {
    "delegation": "`delegates: [NAME]` of a worker",
    "dynamic_agents": "`creates: true` of a worker",
    "filesystem": "`filesystem_rw`",
    "filesystem_project": "`filesystem_rw`",
    "filesystem_cwd": "`filesystem_rw`",
    "filesystem_project_ro": "`filesystem_ro`",
    "filesystem_cwd_ro": "`filesystem_ro`",
    "filesystem_read_only": "`filesystem_ro`",
    "shell": "`shell_readonly` or `shell_file_ops`",
    "FileSystemToolset": "`filesystem_rw`",
    "ShellToolset": "`shell_readonly` or `shell_file_ops`",
    "ShellApprovalToolset": "`shell_readonly` or `shell_file_ops`",
}

FOREIGN_TOOLSETS = frozenset(_TOOLSETS)
"""The names of llm-do's toolsets."""


def foreign_hint(word: str) -> str:
    """What to write instead of llm-do's word; empty if it is not one of its words."""
    ours = _OURS.get(word) or _TOOLSETS.get(word)
    if not ours:
        return ""
    has_article = ours.startswith(("a ", "the "))
    return f"llm-do's {shown(word)} is {ours}" if has_article else f"llm-do's {shown(word)} is our {ours}"


def import_hint(file: str) -> str:
    """What to do with a worker file of llm-do."""
    directory = os.path.dirname(file) or "."
    if os.path.basename(directory) == "workers":
        directory = os.path.dirname(directory) or "."
    return f"this is a worker file of llm-do; `signoff import llm-do {directory}` shows what it becomes here"


def foreign_files(directory: str, known: set[str]) -> list[str]:
    """Worker files of llm-do in a directory, except those with a known name."""
    try:
        listed = sorted(os.listdir(directory))
    except OSError:
        return []
    parts = [(name, *os.path.splitext(name)) for name in listed]
    return [os.path.join(directory, name) for name, stem, suffix in parts if suffix in SUFFIXES and stem not in known]
