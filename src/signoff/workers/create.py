"""A worker that another worker wrote: never more than its creator has, shown whole, and written once as shown."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, cast

import yaml

from signoff.config import EVERY_WORKER, Limits, Settings, WorkerFile, parse_worker, worker_names, workers_folder
from signoff.core.canonical import digest
from signoff.errors import WrongUse
from signoff.policy.secret import secret_place
from signoff.policy.wording import listed, shown
from signoff.workers.build import plan_of

CREATED_BY = "created_by"
"""Key below `metadata` that holds the name of the worker that wrote the file."""
LONGEST_FILE = 20_000
"""Characters. What is longer nobody reads to the end, so nobody can approve it."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_FREE_SETTINGS = frozenset(
    "temperature top_p top_k max_tokens seed stop_sequences presence_penalty frequency_penalty "
    "parallel_tool_calls timeout thinking".split()
)
"""Settings that only change how a model answers. Others may send bodies of their own, and with them tools."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A new worker as it would be written."""

    name: str
    path: str
    text: str
    """The whole file."""
    cut: tuple[str, ...]
    """What was asked for and is not in it, one sentence each."""


def draft(settings: Settings, creator: WorkerFile, name: str, text: str, taken: Collection[str] = ()) -> Draft:
    """The file that `text` becomes, with what its creator lacks taken out.

    `taken` are names besides those of the project's files. Raises `WrongUse` or `WrongFile`, with the place, where
    there is nothing to write.
    """
    path = _path(settings, name)
    if len(text) > LONGEST_FILE:
        raise WrongUse(f"the file has {len(text)} characters; over {LONGEST_FILE} nobody can be asked about it")
    written = parse_worker(text, _meant(path, text), settings)
    _refuse(written, creator)
    values, cut = _Clipped(settings, creator, written).values()
    effective = _as_yaml(values)
    if len(effective) > LONGEST_FILE:
        raise WrongUse(f"with its creator's rules the file has over {LONGEST_FILE} characters; make it shorter")
    again = parse_worker(effective, path, settings)
    plan_of(again)
    same, more = _Clipped(settings, creator, again).values()
    if more or same != values:
        raise WrongUse("the file means something else once it is written down; write it in a simpler way")
    made = Draft(name, path, effective, tuple(cut))
    there = {one.lower() for one in (*worker_names(settings), *taken)}
    if (name in there or os.path.lexists(path)) and not _is_written(made):
        raise WrongUse(f"there is a worker {shown(name)} already: choose another name, or call it")
    return made


def powers(creator: WorkerFile) -> str:
    """What a new worker can have at most, in words. It changes with whatever a draft is clipped to."""
    most = ", ".join(f"{name} {_limit(value)}" for name, value in _limits(creator.limits).items()) or "none"
    bound = [spot.value for spot in creator.policy_spots]
    return (
        f"At most: toolsets {_names(creator.toolsets)}; delegates {_names(creator.delegates)}; limits {most}; "
        f"model {creator.spec.get('model', 'the default')}; capabilities {len(_capabilities(creator))}; "
        f"its creator's {len(bound)} rules and approvers {_names(creator.approvers)} hold for it too "
        f"[{digest([bound, _capabilities(creator), creator.spec.get('model_settings')])[:12]}]."
    )


def write(made: Draft) -> None:
    """Put the file there, whole or not at all, and never over another. One that is the same already is left alone."""
    if _is_written(made):
        return
    folder = os.path.dirname(made.path)
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(made.text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.link(temporary, made.path)  # unlike a rename, it never replaces what is there
    except FileExistsError as error:
        raise WrongUse(f"there is a file {made.path} by now; nothing was written") from error
    finally:
        os.unlink(temporary)


def creator_of(file: WorkerFile) -> str:
    """The worker that wrote this one; empty where a person did."""
    metadata: Any = file.spec.get("metadata")
    name = cast("Mapping[str, Any]", metadata).get(CREATED_BY) if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""


def _path(settings: Settings, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise WrongUse(f"bad name {shown(name)} for a worker: use small letters, digits, `_` and `-`")
    folder = workers_folder(settings)
    if os.path.realpath(folder) != os.path.join(os.path.realpath(settings.folder), os.path.basename(folder)):
        raise WrongUse(f"{folder} is a link to somewhere else, and no worker is written through it")
    return os.path.join(folder, f"{name}.yaml")


def _is_written(made: Draft) -> bool:
    """Whether this very file is there: a call whose process died after it wrote is made again, and finds it done."""
    if os.path.islink(made.path):
        return False
    try:
        with open(made.path, encoding="utf-8", newline="") as stream:
            return stream.read(LONGEST_FILE + 1) == made.text
    except (OSError, UnicodeDecodeError):
        return False


def _meant(path: str, text: str) -> str:
    """The name under which the text is read: Markdown where keys stand between two lines of dashes."""
    lines = [line.rstrip() for line in text.split("\n")]
    return f"{os.path.splitext(path)[0]}.md" if lines[0] == "---" and "---" in lines[1:] else path


def _refuse(written: WorkerFile, creator: WorkerFile) -> None:
    """What is not clipped but refused, because the rest would make no sense without it."""
    if (spot := written.spots.get("extends")) is not None:
        raise spot.wrong_key("a new worker extends no other", "write out what it should have")
    known = _capabilities(creator)
    for one in _capabilities(written):
        if one not in known:
            where = written.spots.get("capabilities", written.spot)
            raise where.wrong(f"its creator {creator.name} does not have this capability", "leave it out")
    for number, name in enumerate(written.attachments):
        if why := secret_place(os.path.join(os.path.dirname(written.file), name)):
            raise written.spots[f"attachments[{number}]"].wrong(f"{shown(name)} {why}", "leave it out")


class _Clipped:
    """A worker's keys with what its creator lacks taken out."""

    def __init__(self, settings: Settings, creator: WorkerFile, written: WorkerFile) -> None:
        self.settings = settings
        self.creator = creator
        self.written = written
        self.cut: list[str] = []

    def values(self) -> tuple[dict[str, Any], list[str]]:
        """The keys of the file to write, and what was cut."""
        written, spec = self.written, self.written.spec
        kept = {key: spec[key] for key in ("retries", "end_strategy", "tool_timeout", "capabilities") if key in spec}
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
            "limits": self._limited(),
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
        most, asked = _limits(self.creator.limits), _limits(self.written.limits)
        found: dict[str, Any] = {}
        for name in (field.name for field in fields(Limits)):
            values = [value for value in (asked.get(name), most.get(name)) if value is not None]
            if not values:
                continue
            found[name] = _limit(min(values))
            if name in most and (name not in asked or asked[name] > most[name]):
                told = f"instead of {_limit(asked[name])}" if name in asked else f"as for {self.creator.name}"
                self.cut.append(f"limits.{name} is {found[name]} {told}")
        return found

    def _rules(self) -> list[Any]:
        """The creator's rules first, so that they decide. Those of the project's defaults hold anyway."""
        spots = (*self.creator.policy_spots, *self.written.policy_spots)
        rules = [spot.value for spot in spots if spot.document.file != self.settings.file]
        return [rule for number, rule in enumerate(rules) if rule not in rules[:number]]

    def _approvers(self) -> list[str]:
        if not self.creator.approvers:
            return list(self.written.approvers)
        if self.written.approvers != self.creator.approvers:
            self.cut.append(f"it is answered for by {listed(self.creator.approvers)}, as for {self.creator.name}")
        return list(self.creator.approvers)

    def _model(self) -> Any:
        own, asked = self.creator.spec.get("model"), self.written.spec.get("model")
        if asked not in (None, own):
            self.cut.append(f"without the model {shown(str(asked))}: it has that of {self.creator.name}")
        return own

    def _settings(self) -> dict[str, Any]:
        asked = cast("Mapping[str, Any]", self.written.spec.get("model_settings") or {})
        own = cast("Mapping[str, Any]", self.creator.spec.get("model_settings") or {})
        lost = [key for key in asked if key not in _FREE_SETTINGS and (key not in own or own[key] != asked[key])]
        if lost:
            self.cut.append(f"without the model settings {listed(lost)}")
        return {key: value for key, value in asked.items() if key not in lost}


def _is_nothing(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _limits(limits: Limits) -> dict[str, Any]:
    values = {field.name: getattr(limits, field.name) for field in fields(Limits)}
    return {name: value for name, value in values.items() if value is not None}


def _limit(value: Any) -> Any:
    """A limit as it is written in a file."""
    return f"{int(value.total_seconds())}s" if isinstance(value, timedelta) else value


def _capabilities(file: WorkerFile) -> Sequence[Any]:
    return cast("Sequence[Any]", file.spec.get("capabilities") or [])


def _names(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and every value in full."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return cast("Any", dumper).represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _as_yaml(values: Mapping[str, Any]) -> str:
    return yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
