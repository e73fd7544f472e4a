"""Clip the keys of a new worker to what its creator has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any, cast

from signoff.config import EVERY_WORKER, Limits, Settings, WorkerFile
from signoff.policy.phrases import listed, shown
from signoff.workers.bounds import Bounds, rules_for
from signoff.workers.origin import CREATED_BY

_FREE_SETTINGS = frozenset(
    "temperature top_p top_k seed stop_sequences presence_penalty frequency_penalty parallel_tool_calls".split()
)
"""Settings that only change how a model answers, and cost nothing by themselves."""
_AMOUNTS = ("max_tokens", "timeout")
"""Settings of which less is less. Without them the provider decides, and nobody knows how much that is."""


class Clipped:
    """A worker's keys, clipped to what its creator has."""

    def __init__(self, settings: Settings, creator: WorkerFile, written: WorkerFile, bounds: Bounds) -> None:
        self.settings = settings
        self.bounds = bounds
        self.creator = creator
        self.written = written
        self.cut: list[str] = []

    def values(self) -> tuple[dict[str, Any], list[str]]:
        """Return the keys of the file to write, and what was cut."""
        written, spec = self.written, self.written.spec
        kept = {key: spec[key] for key in ("end_strategy", "capabilities") if key in spec}
        found: dict[str, Any] = {
            "name": written.name,
            "description": written.description,
            "model": self._model(),
            "model_settings": self._settings(),
            "instructions": spec.get("instructions"),
            "toolsets": self._toolsets(),
            "delegates": self._delegates(),
            "creates": written.creates,
            "policy": self._rules(),
            "approvers": self._approvers(),
            "on_denied": written.on_denied,
            "limits": self._limited(),
            "retries": self._retries(),
            "tool_timeout": self._lower(
                "tool_timeout", spec.get("tool_timeout"), self.creator.spec.get("tool_timeout")
            ),
            **kept,
            "input": written.input if written.input is not None else spec.get("deps_schema"),
            "output": written.output if written.output is not None else spec.get("output_schema"),
            "attachments": list(written.attachments),
            "metadata": {**(spec.get("metadata") or {}), CREATED_BY: self.creator.name},
        }
        return {key: value for key, value in found.items() if not _is_nothing(value)}, self.cut

    def _toolsets(self) -> list[str]:
        lost = [name for name in self.written.toolsets if name not in self.creator.toolsets]
        if lost:
            self.cut.append(f"without the toolsets {listed(lost)}, which {self.creator.name} does not have")
        return [name for name in self.written.toolsets if name not in lost]

    def _delegates(self) -> list[str] | str:
        asked, own = self.written.delegates, self.creator.delegates
        if EVERY_WORKER in own and EVERY_WORKER in asked:
            return EVERY_WORKER
        if EVERY_WORKER in asked:
            self.cut.append(f"`*` in delegates became the workers that {self.creator.name} may call")
            return list(own)
        lost = [name for name in asked if name == self.creator.name or not {name, EVERY_WORKER} & {*own}]
        if lost:
            self.cut.append(f"without the delegates {listed(lost)}, which {self.creator.name} may not call")
        return [name for name in asked if name not in lost]

    def _limited(self) -> dict[str, Any]:
        most, asked = limits_of(self.creator.limits), limits_of(self.written.limits)
        names = [field.name for field in fields(Limits)]
        found = {name: self._lower(f"limits.{name}", asked.get(name), most.get(name)) for name in names}
        return {name: written_limit(value) for name, value in found.items() if value is not None}

    def _lower(self, what: str, asked: Any, most: Any) -> Any:
        """Return the lower of two values; a missing one is replaced by the creator's, if there is one."""
        if most is None or (isinstance(asked, int | float | timedelta) and asked <= most):
            return asked
        told = f"instead of {written_limit(asked)}" if asked is not None else f"as for {self.creator.name}"
        self.cut.append(f"{what} is {written_limit(most)} {told}")
        return most

    def _retries(self) -> Any:
        asked, most = _by_kind(self.written.spec.get("retries")), _by_kind(self.creator.spec.get("retries"))
        default = dict.fromkeys(asked, _RETRIES_BY_DEFAULT)
        kinds = dict.fromkeys((*asked, *most))
        found = {kind: self._lower(f"retries.{kind}", asked.get(kind), {**default, **most}.get(kind)) for kind in kinds}
        alike = len(found) == len(_RETRIES) and len(set(found.values())) == 1
        return next(iter(found.values())) if alike else found or None

    def _rules(self) -> list[Any]:
        """Return the creator's rules first, so that they decide. Rules of the project's defaults apply anyway."""
        own = [spot.value for spot in self.written.policy_spots if spot.document.file != self.settings.file]
        rules = [*rules_for(self.settings, self.bounds.layers, self.creator, self.written.name), *own]
        return [rule for number, rule in enumerate(rules) if rule not in rules[:number]]

    def _approvers(self) -> list[str]:
        if not self.creator.approvers:
            return list(self.written.approvers)
        if self.written.approvers != self.creator.approvers:
            self.cut.append(f"its approvers are {listed(self.creator.approvers)}, as for {self.creator.name}")
        return list(self.creator.approvers)

    def _model(self) -> Any:
        own, asked = self.creator.spec.get("model"), self.written.spec.get("model")
        if asked not in (None, own):
            self.cut.append(f"without the model {shown(str(asked))}: it has the model of {self.creator.name}")
        return own

    def _settings(self) -> dict[str, Any]:
        asked = cast("Mapping[str, Any]", self.written.spec.get("model_settings") or {})
        own = cast("Mapping[str, Any]", self.creator.spec.get("model_settings") or {})
        amounts = [key for key in _AMOUNTS if own.get(key) is not None]
        lost = [key for key in asked if key not in (*_FREE_SETTINGS, *amounts) and (key, asked[key]) not in own.items()]
        if lost:
            self.cut.append(f"without the model settings {listed(lost)}")
        kept = {key: value for key, value in asked.items() if key not in lost}
        return kept | {key: self._lower(f"model_settings.{key}", kept.get(key), own[key]) for key in amounts}


def _is_nothing(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


_RETRIES = ("tools", "output")
_RETRIES_BY_DEFAULT = 1
"""What PydanticAI takes where an agent does not say."""


def _by_kind(retries: Any) -> dict[str, int]:
    """Return `retries` by kind: a single number applies to both kinds."""
    if isinstance(retries, Mapping):
        return dict(cast("Mapping[str, int]", retries))
    return {kind: int(retries) for kind in _RETRIES} if retries is not None else {}


def limits_of(limits: Limits) -> dict[str, Any]:
    values = {field.name: getattr(limits, field.name) for field in fields(Limits)}
    return {name: value for name, value in values.items() if value is not None}


def written_limit(value: Any) -> Any:
    """Return a limit as it is written in a file."""
    return f"{int(value.total_seconds())}s" if isinstance(value, timedelta) else value


def capabilities_of(file: WorkerFile) -> Sequence[Any]:
    return cast("Sequence[Any]", file.spec.get("capabilities") or [])
