"""What the documentation says that the code says: `./dev docs --write`, or `python -m tests.docs.generated --write`.

A page has a place for each table, between `<!-- generated: NAME -->` and `<!-- end: NAME -->`. Nobody writes there by
hand: a description is mended where the code has it, in a docstring, the help of a command or a schema.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from tests.docs.drawings import drawings
from tests.docs.pictures import pictures

from signoff import errors
from signoff.cli.main import COMMANDS, program
from signoff.config.json_schemas import SCHEMA_FILES, schema_of
from signoff.core import event
from signoff.core.record import KINDS
from signoff.server.app import ENDPOINTS
from signoff.server.openapi import document

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PLACE = re.compile(r"(<!-- generated: (?P<name>[\w ]+) -->\n)(?P<body>.*?)(<!-- end: (?P=name) -->)", re.DOTALL)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    titles = tuple(head)
    lines = [titles, ("---",) * len(titles), *rows]
    cells = ((" ".join(cell.split()).replace("|", r"\|") for cell in line) for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


# --- errors ---


def error_table() -> str:
    """Every error, with what its docstring says."""
    return table(("error", "is a", "when", "what to do"), map(_error, _below(errors.SignoffError)))


def _below(top: type) -> Iterator[type]:
    yield top
    for each in top.__subclasses__():
        if each.__module__ == errors.__name__:
            yield from _below(each)


def _error(error: type) -> tuple[str, ...]:
    when, _, fix = inspect.cleandoc(error.__doc__ or "").partition("\n\nFix: ")
    bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
    return f"`{error.__name__}`", bases, when, fix.rstrip(".")


# --- events ---


def step_table() -> str:
    """The steps of a call, with the docstrings below them."""
    rows = ((f"`{event.CallStep[name]}`", said.rstrip(".")) for name, said in attributes(event.CallStep).items())
    return table(("`what`", "meaning"), rows)


def kind_table() -> str:
    """The kinds of events on the record."""
    return table(("kind", "when"), ((f"`{kind}`", said) for kind, said in KINDS.items()))


def attributes(cls: type) -> dict[str, str]:
    """The docstrings of a class's attributes."""
    [body] = [node for node in ast.parse(inspect.getsource(cls)).body if isinstance(node, ast.ClassDef)]
    found: dict[str, str] = {}
    for node, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            is_said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            found[node.targets[0].id] = str(after.value.value) if is_said else ""  # type: ignore[union-attr]
    return found


# --- commands ---


def command_tables() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    context = click.Context(program, info_name="signoff", **program.context_settings)
    found = (_commands(name, program.get_command(context, name), context) for name in COMMANDS)
    return "\n".join(text for texts in found for text in texts)


def _commands(name: str, command: click.Command | None, above: click.Context) -> Iterator[str]:
    assert command is not None
    context = click.Context(command, info_name=name.rpartition(" ")[2], parent=above)
    said = inspect.cleandoc(command.help or "").partition("\b")[0].partition("\n\n")[0]
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    text = f"## `signoff {name}`\n\n{' '.join(said.split())}\n\n```text\n{usage}\n```\n"
    if options:
        rows = [_option(one, context) for one in options]
        text += f"\n{table(('option', 'meaning', 'default'), rows)}"
    yield text
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _commands(f"{name} {inner}", command.get_command(context, inner), context)


def _option(option: click.Option, context: click.Context) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for name in option.opts + option.secondary_opts)
    takes = "" if option.is_flag or option.count else f" `{option.make_metavar(context)}`"
    default = option.default if isinstance(option.default, (str, int, float)) else None
    shown = "" if option.is_flag or default in (None, "") else f"`{default}`"
    return f"{names}{takes}", option.help or "", shown


# --- keys of files ---

_FILES = {"project": "signoff.yaml", "worker": "A worker file", "script": "A script"}


def key_tables() -> str:
    """Every key of the files that people write, from their schemas. A part that several places share stands once."""
    told: set[str] = set()
    return "\n".join(text for name in SCHEMA_FILES for text in _file(_FILES[name], schema_of(name), told))


def _file(title: str, schema: Mapping[str, Any], told: set[str]) -> Iterator[str]:
    parts: Mapping[str, Any] = schema.get("$defs", {})
    waiting: list[str] = []
    rows = list(_keys(schema, "", parts, waiting))
    yield f"## {title}\n\n{schema.get('description', '')}\n\n{table(('key', 'meaning', 'takes'), rows)}"
    for name in waiting:  # grows
        if name not in told:
            told.add(name)
            rows = list(_keys(parts[name], "", parts, waiting))
            yield f"### {name}\n\n{parts[name].get('description', '')}\n\n{table(('key', 'meaning', 'takes'), rows)}"


def _keys(
    node: Mapping[str, Any], path: str, parts: Mapping[str, Any], waiting: list[str]
) -> Iterator[tuple[str, ...]]:
    """The keys below a node, with their paths; of parts with keys of their own, only that they are there."""
    for key, value in _properties(node).items():
        if not isinstance(value, dict):
            continue
        name = _part(value, parts)
        meaning = _text(value.get("description") or (parts[name].get("description") if name else "") or "")
        if name and _has_keys(parts[name], parts):
            waiting.append(name)
            yield f"`{path}{key}`", meaning, f"[{name}](#{name.lower()})"
        else:
            yield f"`{path}{key}`", meaning, _takes(value, parts)
            yield from _keys(value, f"{path}{key}.", parts, waiting)
    for key, below in (("additionalProperties", "NAME."), ("items", "[].")):
        inner = node.get(key)
        if isinstance(inner, dict):
            name = _part(inner, parts)
            if name and _has_keys(parts[name], parts):
                waiting.append(name)
                yield f"`{path}{below.rstrip('.')}`", "", f"[{name}](#{name.lower()})"
            else:
                yield from _keys(inner, f"{path}{below}", parts, waiting)
    for choice in [*_choices(node), *(one["then"] for one in node.get("allOf", ()))]:
        name = _part(choice, parts)
        if name and _has_keys(parts[name], parts):
            waiting.append(name)
        elif not name:
            yield from _keys(choice, path, parts, waiting)


def _text(plain: str) -> str:
    """A text of a schema, in Markdown."""
    return re.sub(r"([*<])", r"\\\1", plain)


def _properties(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return node.get("properties", {})


def _choices(node: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for key in ("anyOf", "oneOf") for one in node.get(key, ()) if "required" not in one]


def _part(node: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if not name and isinstance(node.get("else"), dict):  # what is meant without further keys
        return _part(node["else"], parts)
    return name if name in parts else ""


def _has_keys(node: Mapping[str, Any], parts: Mapping[str, Any], depth: int = 4) -> bool:
    """Whether a part has keys of its own, itself, in a list, or as one of several forms."""
    if _properties(node):
        return True
    inner = [one for one in (node.get("items"), node.get("additionalProperties")) if isinstance(one, dict)]
    below = [parts[name] if (name := _part(one, parts)) else one for one in (*inner, *_choices(node))]
    return depth > 0 and any(_has_keys(one, parts, depth - 1) for one in below)


def _takes(node: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """What may stand there, in a few words."""
    if name := _part(node, parts):
        said = parts[name].get("description", "").rstrip(".")
        return said[0].lower() + said[1:] if said and "description" in node else _takes(parts[name], parts)
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if choices := _choices(node):
        return " or ".join(dict.fromkeys(filter(None, (_takes(one, parts) for one in choices))))
    kinds = node.get("type", ())
    known = [kinds] if isinstance(kinds, str) else kinds
    names = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "`true` or `false`"}
    names |= {"object": "a mapping", "array": "a list", "null": "nothing"}
    return " or ".join(names.get(kind, kind) for kind in known)


# --- decisions ---


def record_table() -> str:
    """The decision records, with their status and what changed them."""
    return table(("", "decision", "status", "changed by"), map(_decision, sorted((DOCS / "adr").glob("0*.md"))))


def _decision(file: Path) -> tuple[str, ...]:
    text = file.read_text("utf-8")
    title = re.match(r"# (\d+)\. (.+)\n\n\*\*Status:\*\* (\w+)(.*)\n", text)
    assert title is not None, f"{file.name} begins with a title and a status"
    changes = "; ".join(re.findall(r"changed by (\[.*?)(?=; changed by|$)", title[4]))
    return title[1], f"[{title[2]}]({file.name})", title[3], changes


TABLES: dict[str, Callable[[], str]] = {
    "errors": error_table,
    "steps": step_table,
    "kinds": kind_table,
    "commands": command_tables,
    "keys": key_tables,
    "decisions": record_table,
}


def places() -> Iterator[tuple[Path, re.Match[str]]]:
    """Every place for a table, with its page."""
    for page in sorted(DOCS.rglob("*.md")):
        yield from ((page, found) for found in PLACE.finditer(page.read_text("utf-8")))


def filled(page: str) -> str:
    """A page with its tables made anew."""
    return PLACE.sub(lambda found: f"{found[1]}\n{TABLES[found['name']]()}\n{found[4]}", page)


def images() -> dict[Path, str]:
    """The drawings and pictures, by their files."""
    made = {**drawings(), **pictures()}
    return {DOCS / "pictures" / f"{name}.svg": svg for name, svg in made.items()}


def openapi_text() -> str:
    """The description of the HTTP API."""
    return json.dumps(document(ENDPOINTS), ensure_ascii=False, indent=2) + "\n"


def main() -> None:
    made = {page: filled(page.read_text("utf-8")) for page in {page for page, _ in places()}} | images()
    made[DOCS / "reference" / "openapi.json"] = openapi_text()
    for file, text in made.items():
        if not file.exists() or file.read_text("utf-8") != text:
            print(file.relative_to(ROOT))
            if "--write" in sys.argv:
                file.write_text(text, "utf-8")
    if "--write" in sys.argv:
        from tests.docs import screenshots  # a browser is started, where there is one

        screenshots.main()


if __name__ == "__main__":
    main()
