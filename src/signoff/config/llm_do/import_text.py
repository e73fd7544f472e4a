"""The texts of the files that an import writes."""

from __future__ import annotations

from typing import Any

import yaml

from signoff.config.llm_do.draft import ASK_DELEGATION, Imported, WorkerDraft

_HEADER = "# Written by `signoff import llm-do`. What could not be carried over is in its report.\n"


def worker_text(draft: WorkerDraft) -> str:
    """The text of a worker file."""
    keys = draft.source.keys
    front: dict[str, Any] = {}
    for key in ("description", "model"):
        if key in keys and keys[key].value is not None:
            front[key] = keys[key].text()
    if draft.toolsets:
        front["toolsets"] = draft.toolsets
    if draft.delegates:
        front["delegates"] = "*" if "*" in draft.delegates else list(draft.delegates)
    if draft.creates:
        front["creates"] = True
    rules = [rule for rule in draft.tightens if rule != ASK_DELEGATION or not draft.frees_delegation]
    if rules:
        front["policy"] = rules
    return f"---\n{_yaml(front) if front else ''}---\n{draft.text}\n"


def project_text(result: Imported) -> str:
    """The text of `signoff.yaml`."""
    whole: dict[str, Any] = {"toolsets": result.toolsets}
    if result.depth is not None:
        whole["defaults"] = {"worker": {"limits": {"depth": result.depth}}}
    if result.policy:
        whole["policy"] = [rule for at, rule in enumerate(result.policy) if rule not in result.policy[:at]]
    return _HEADER + _yaml(whole)


class _PlainDumper(yaml.SafeDumper):
    """Writes no YAML aliases: signoff reads them, but people do not like them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(value: dict[str, Any]) -> str:
    text: str = yaml.dump(
        value,
        Dumper=_PlainDumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None if any(map(_is_nested, value.values())) else False,
        width=110,
    )
    return text


def _is_nested(value: object) -> bool:
    return isinstance(value, (dict, list))
