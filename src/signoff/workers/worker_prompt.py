"""What a worker is told: its instructions with the input filled in, the prompt, and the attached files."""

from __future__ import annotations

import errno
import json
import mimetypes
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai import BinaryContent, RunContext
from pydantic_ai.messages import UserContent
from pydantic_handlebars import HandlebarsError, check_template_compatibility, compile, extract_dependencies

from signoff.config.entries import WorkerFile
from signoff.errors import WrongFile, WrongUse
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue
from signoff.policy.secret import secret_place
from signoff.regular_file import bytes_of
from signoff.toolsets.builtin.files.root_directory import Root
from signoff.workers.limits import WorkerDeps
from signoff.workers.origin import writer_of
from signoff.workers.schemas import problems_in

LARGEST_FILE = 10_000_000
"""Bytes of one attached file."""
LARGEST_ALL = 25_000_000
"""Bytes of all files attached to one prompt."""

Prompt = str | Sequence[UserContent]
_TEXT = frozenset({"application/json", "application/xml", "application/yaml", "application/toml", "application/x-sh"})


@dataclass(frozen=True, slots=True)
class Instructions:
    """A worker's instructions, as text and as templates that its input fills."""

    parts: tuple[str | Callable[[RunContext[Any]], str], ...]
    fields: frozenset[str]
    """The input fields that they mention."""


def read_instructions(file: WorkerFile, schema: Mapping[str, Any] | None) -> Instructions:
    """Read the instructions of a worker's file. Raises with the place of a wrong template."""
    written: Any = file.spec.get("instructions")
    texts = cast("list[Any]", written if isinstance(written, list) else [written] if written is not None else [])
    parts: list[str | Callable[[RunContext[Any]], str]] = []
    fields: set[str] = set()
    for number, text in enumerate(texts):
        spot = _spot(file, "instructions", number if isinstance(written, list) else None)
        if not isinstance(text, str):
            raise spot.wrong("instructions are a text, or a list of texts")
        if "{{" not in text:
            parts.append(text)
            continue
        fields |= _checked(text, spot, schema)
        parts.append(_filling(text))
    return Instructions(tuple(parts), frozenset(fields))


def _checked(text: str, spot: ConfigValue, schema: Mapping[str, Any] | None) -> set[str]:
    """Return the fields that a template mentions. Raises if the worker's input lacks one."""
    try:
        fields = set(extract_dependencies(text))
        if schema is None:
            name = min(fields, default="field")
            fix = f"describe it: input: {{type: object, properties: {{{name}: {{type: string}}}}}}"
            raise spot.wrong(f"{{{{{name}}}}} stands for a field of the worker's input, but it takes none", fix)
        found = check_template_compatibility(text, _spelt_out(schema))
    except HandlebarsError as error:
        raise spot.wrong(f"this template cannot be read: {error}", "fields are written {{field}}") from error
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        what = "the schema of the worker's `input` does not show whether it has the fields of this template"
        raise spot.wrong(what, "describe them in a simpler way: properties: {field: {type: string}}") from error
    for issue in found.issues:
        if issue.severity == "error":
            known = cast("Mapping[str, Any]", schema.get("properties", {}))
            what = f"the template names {shown(issue.field_path)}, which the worker's `input` does not have"
            raise spot.wrong(what, did_you_mean(issue.field_path, known))
    return fields


def _spelt_out(schema: Any) -> Any:
    """Return the schema with `true` and `false` in it as equivalent mappings: the check reads nothing else."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    if not isinstance(schema, Mapping):
        return schema
    found = dict(cast("Mapping[str, Any]", schema))
    for key in ("properties", "patternProperties", "$defs", "definitions"):
        if isinstance(found.get(key), Mapping):
            found[key] = {name: _spelt_out(one) for name, one in found[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), Mapping) or (key == "items" and isinstance(found.get(key), bool)):
            found[key] = _spelt_out(found[key])
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if isinstance(found.get(key), list):
            found[key] = [_spelt_out(one) for one in found[key]]
    return found


def _filling(text: str) -> Callable[[RunContext[Any]], str]:
    template = compile(text)

    def instructions(ctx: RunContext[Any]) -> str:
        return template.render(dict(ctx.deps.input) if isinstance(ctx.deps, WorkerDeps) else {})

    return instructions


def checked_input(
    file: WorkerFile, schema: Mapping[str, Any] | None, given: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return a worker's input. Raises `WrongUse` that says what does not fit the schema."""
    if schema is None:
        if given:
            raise WrongUse(f"{file.name} takes no input: {file.file} has no `input` schema")
        return {}
    values = dict(given or {})
    if problems := problems_in(values, schema):
        wanted = "\n  ".join(problems)
        raise WrongUse(f"the input does not fit what {file.name} takes ({file.file}, `input`):\n  {wanted}")
    return values


def prompt_of(
    file: WorkerFile,
    text: str,
    given: Mapping[str, Any],
    *,
    filled: Iterable[str] = (),
    attachments: Sequence[str | os.PathLike[str]] = (),
    within: str = "",
) -> Prompt:
    """Return the prompt: the text, the input fields that the instructions do not hold (`filled`), and attached files.

    `within` is a directory that no attachment of the run may lead out of, not even through a symlink.
    """
    rest = {name: value for name, value in given.items() if name not in frozenset(filled)}
    words = [text] if text.strip() else []
    if rest:
        words.append("Input:\n" + json.dumps(rest, ensure_ascii=False, indent=2))
    files = [*_own(file), *((path, None) for path in attachments)]
    if not words and not files:
        raise WrongUse(f"the prompt for {file.name} is empty: give it one")
    contents: list[UserContent] = []
    size = 0
    for path, spot in files:
        content, read = attached(os.fspath(path), spot, within=within if spot is None else "")
        size += read
        if size > LARGEST_ALL:
            raise _wrong(spot, f"{os.fspath(path)}: all attached files together are over {LARGEST_ALL:,} bytes")
        contents.append(content)
    said = "\n\n".join(words)
    if not contents:
        return said
    return [said, *contents] if said else contents


def _own(file: WorkerFile) -> Iterator[tuple[str, ConfigValue | None]]:
    directory = os.path.dirname(file.file)
    for number, name in enumerate(file.attachments):
        spot = _spot(file, "attachments", number)
        # The approved file may be a symlink by now, also for a worker that extends the one it was approved for.
        if (writer := writer_of(spot)) and (why := why_private(file.file, name)):
            raise spot.wrong(f"{shown(name)} {why}, and {writer} wrote this file", "take it out")
        yield os.path.join(directory, name), spot


def why_private(file: str, name: str) -> str:
    """Return why a model may not attach this file, as words that follow its name; empty if it may.

    `file` is the worker's file, from whose directory the name starts.
    """
    directory = os.path.realpath(os.path.dirname(file))
    return why_private_in(os.path.dirname(directory), os.path.join(directory, name))


def why_private_in(project: str, path: str) -> str:
    """As `why_private`, for an absolute path; `project` is the project's directory, as a real path."""
    meant = os.path.normpath(path)
    if os.path.realpath(path) != meant:
        return "leads through a link"
    inside = os.path.relpath(meant, project)
    if any(part.startswith(".") and part != os.pardir for part in inside.split(os.sep)):
        return "is hidden"
    return secret_place(inside)


def attached(path: str, spot: ConfigValue | None = None, *, within: str = "") -> tuple[UserContent, int]:
    """Return a file as a model gets it, and its size. `spot` is where it is named, if that is in a file.

    `within` is a directory that it must be in, reached without symlinks.
    """
    name = os.path.basename(path)
    try:
        data = _beneath(within, path) if within else _content(path)
    except OSError as error:
        raise _wrong(spot, f"the file {path} cannot be attached: {error.strerror}") from error
    if len(data) > LARGEST_FILE:
        raise _wrong(spot, f"the file {path} is over {LARGEST_FILE:,} bytes", "attach a part of it")
    kind = mimetypes.guess_type(name)[0] or ""
    if kind.startswith(("image/", "audio/", "video/")) and kind != "image/svg+xml":
        return BinaryContent(data=data, media_type=kind, identifier=name), len(data)
    if b"\0" not in data and (text := _text(data)) is not None:
        return f"The file {name}:\n{text}", len(data)
    content = BinaryContent(data=data, media_type=kind or "application/octet-stream", identifier=name)
    if not content.is_document or kind.startswith("text/") or kind in _TEXT:
        what = f"the file {path} is neither text nor an image, audio, video or document"
        raise _wrong(spot, what, "models cannot be given anything else")
    return content, len(data)


def _content(path: str) -> bytes:
    return bytes_of(path, LARGEST_FILE + 1)


def _beneath(root: str, path: str) -> bytes:
    """Read a file below a directory. Since its path was checked, it may have become a symlink (a TOCTOU race)."""
    meant = os.path.relpath(path, os.path.realpath(root))
    with closing(Root(root)) as opened, opened.reach(meant) as file:
        if file.where != meant:
            raise OSError(errno.ELOOP, "it is a symbolic link now")
        return file.read(LARGEST_FILE + 1)


def _text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _wrong(spot: ConfigValue | None, what: str, fix: str = "") -> WrongFile | WrongUse:
    """Return the error about an attached file: in the worker's file, or in what the program was given."""
    if spot is not None:
        return spot.wrong(what, fix)
    return WrongUse(f"{what}\n  {fix}" if fix else what)


def _spot(file: WorkerFile, key: str, number: int | None = None) -> ConfigValue:
    """Return where a key of the file is, or one item of the list below it."""
    whole = file.spots.get(key, file.spot)
    if number is None:
        return whole
    item = file.spots.get(f"{key}[{number}]")
    if item is not None:
        return item
    value: Any = whole.value
    return whole.child(number) if isinstance(value, list) and number < len(cast("list[Any]", value)) else whole
