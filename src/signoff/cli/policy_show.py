"""`signoff policy show`: the merged policy, layer by layer, and where each rule comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import click

from signoff.cli import shared_options
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import pad
from signoff.config import Settings, ToolsetEntry, WorkerFile, load_worker
from signoff.core.verdict import Effect
from signoff.core.visible_text import visible
from signoff.policy.builtin import RULES, builtin_policy
from signoff.policy.match import Match
from signoff.wiring.caller import Caller
from signoff.wiring.project import settings_for

if TYPE_CHECKING:
    from signoff.policy.engine import Policy
    from signoff.policy.rule import Rule

SILENCE = (
    "A matching deny always wins. Otherwise the first matching rule of a layer decides for that layer.",
    "The strictest layer wins.",
    "A layer without a matching rule abstains. If all layers abstain, the call asks.",
)
OTHERWISE = (
    "`otherwise: deny` does not abstain: it denies what no rule above it in its layer matches, whatever others allow."
)


@dataclass(frozen=True, slots=True)
class ShownPolicy:
    """One layer of the policy, for people: its origin, its rules as written, and a remark."""

    kind: str
    name: str
    rules: tuple[tuple[Rule, Any], ...] = ()
    remark: str = ""
    holds: bool = True
    """Whether its rules apply."""


@click.command()
@click.argument("file", required=False)
@click.option("--worker", metavar="NAME", help="The policy for this worker: its toolsets and its own rules.")
@shared_options.as_json
def show(file: str | None, worker: str | None, as_json: bool) -> None:
    """Print the merged policy in the order of evaluation: each rule as written, and its place.

    FILE defaults to the nearest signoff.yaml. Without --worker, it includes the rules of all toolsets in the file.
    Rules from SIGNOFF_ASK, SIGNOFF_DENY and SIGNOFF_POLICY come last.

    \b
    Example:
      signoff policy show --worker triage
    """
    settings = settings_for(file)
    chosen = load_worker(settings, worker) if worker is not None else None
    layers = list(_layers(settings, chosen))
    if as_json:
        told = [_as_json(layer) for layer in layers]
        silence = "deny" if any(_closes(layer, every=True) for layer in layers) else "ask"
        click.echo(json_line({"worker": worker, "layers": told, "silence": silence, "locked": settings.locked}))
        return
    for line in _lines(layers, settings):
        click.echo(line)


def _layers(settings: Settings, worker: WorkerFile | None) -> Iterator[ShownPolicy]:
    if settings.user is not None:
        yield from _user(settings, settings.user)
    rules: list[Any] = settings.spots["policy"].value if "policy" in settings.spots else []
    remark = "" if settings.file else "there is no signoff.yaml here"
    yield ShownPolicy("project", settings.file, _written(settings.policy, rules), remark)
    for name in worker.toolsets if worker is not None else settings.toolsets:
        yield from _toolset(name, settings)
    if worker is not None:
        yield _worker(worker)
    yield from _environment(settings)


def _user(settings: Settings, user: Policy) -> Iterator[ShownPolicy]:
    """The user's own rules; if the project is locked, the ignored ones are listed separately."""
    spot = settings.spots["user"]
    values = {spot.child(at).place: value for at, value in enumerate(spot.value)}
    unheard = {rule.id for rule in settings.unheard}
    told = [
        {**values[rule.place], "on_timeout": "deny"} if rule.id in unheard else values[rule.place]
        for rule in user.rules
    ]
    yield ShownPolicy("user", user.file, _written(user, told))
    if settings.unheard:
        remark = "these are ignored: the project is locked, and they would loosen it"
        yield ShownPolicy(
            "user", user.file, tuple((one, values[one.place]) for one in settings.unheard), remark, holds=False
        )


def _environment(settings: Settings) -> Iterator[ShownPolicy]:
    for policy in Caller.here().layers(settings.directory):
        yield ShownPolicy("environment", policy.file, _written(policy, cast("Sequence[Any]", policy.written)))


def _toolset(name: str, settings: Settings) -> Iterator[ShownPolicy]:
    """The rules written for a toolset, then the built-in rules of a built-in toolset."""
    entry = settings.toolsets.get(name)
    made_of = entry.use if entry is not None else name
    if entry is not None and entry.policy is not None and entry.policy_spot is not None:
        yield ShownPolicy("toolset", name, _written(entry.policy, entry.policy_spot.value))
    if made_of in RULES:
        yield _builtin(name, made_of, entry, settings)
    elif entry is None:
        yield ShownPolicy(
            "toolset", name, remark=f"not in {settings.file or 'a file'}: see signoff toolsets show {name}"
        )
    elif entry.policy is None:
        yield ShownPolicy("toolset", name, remark=f"no rules here: calls that {made_of} does not decide itself ask")


def _builtin(name: str, made_of: str, entry: ToolsetEntry | None, settings: Settings) -> ShownPolicy:
    policy = builtin_policy(made_of, settings.directory)
    assert policy is not None, "it is one of the names that have rules"
    root = entry.config.get("root", ".") if entry is not None else "."
    what = f"built into {made_of}, relative to {root}; where it abstains, the layers above decide"
    return ShownPolicy("toolset", name, _written(policy, RULES[made_of]), what)


def _worker(worker: WorkerFile) -> ShownPolicy:
    written = [spot.value for spot in worker.policy_spots]
    rules = _written(worker.policy, written) if worker.policy is not None else ()
    roles = " or ".join(worker.approvers)
    return ShownPolicy(
        "worker", worker.name, rules, f"every request needs somebody with the role {roles}" if roles else ""
    )


def _written(policy: Policy, values: Sequence[Any]) -> tuple[tuple[Rule, Any], ...]:
    """Rules in the order of evaluation: deny rules first, because they win wherever they are."""
    pairs = list(zip(policy.rules, values, strict=True))
    return tuple(sorted(pairs, key=lambda pair: pair[0].effect is not Effect.DENY or pair[0].otherwise))


def _lines(layers: Iterable[ShownPolicy], settings: Settings) -> Iterator[str]:
    shown = list(layers)
    width = max((len(visible(rule.id)) for layer in shown for rule, _ in layer.rules), default=0)
    for layer in shown:
        title = click.style(f"{layer.kind} {visible(layer.name)}".rstrip(), bold=True)
        yield f"{title}{f'  ({visible(layer.remark)})' if layer.remark else ''}"
        for rule, written in layer.rules:
            yield f"  {pad(visible(rule.id), width)}  {visible(_flow(written))}"
            yield f"  {' ' * width}  {click.style(visible(_place(rule)), dim=True)}"
        if not layer.rules and not layer.remark:
            yield "  no rules"
        yield ""
    yield from SILENCE
    if any(_closes(layer) for layer in shown):
        yield OTHERWISE
    if settings.locked:
        yield "The policy is locked: flags and the environment may tighten it, never loosen it."


def _closes(layer: ShownPolicy, *, every: bool = False) -> bool:
    """Whether the layer has an `otherwise`; with `every`, one that applies to every call of every toolset."""
    if not layer.holds or (every and layer.kind == "toolset"):
        return False
    rules = (rule for rule, _ in layer.rules if rule.otherwise)
    return any(not every or rule.matches == (Match(),) for rule in rules)


def _place(rule: Rule) -> str:
    place = rule.place
    return f"{place.file}:{place.line}" if place.line else place.file


def _flow(value: Any) -> str:
    """A rule on one line, in YAML flow style."""
    import yaml

    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1_000_000).strip()


def _as_json(layer: ShownPolicy) -> dict[str, Any]:
    return {
        "layer": layer.kind,
        "name": layer.name,
        "remark": layer.remark,
        "holds": layer.holds,
        "rules": [
            {
                "id": rule.id,
                "effect": str(rule.effect),
                "rule": written,
                "says": rule.text,
                "file": rule.place.file,
                "line": rule.place.line,
                "key": rule.place.key,
            }
            for rule, written in layer.rules
        ],
    }
