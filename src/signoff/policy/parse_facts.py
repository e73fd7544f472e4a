"""Parse conditions on what a call does: `path`, `command`, `sql`, `url`, `amount` and `recipients`.

Modules that few policies need are imported when a condition is parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from signoff.policy.format import FLAG, Format, MappingFormat, choice, each, made, matching, text, texts
from signoff.policy.keypath import KeyPath
from signoff.policy.match import Condition
from signoff.policy.operators import SIGNS
from signoff.policy.parse_value import NAME_GLOBS
from signoff.policy.paths import PathCondition, read_directory
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue

if TYPE_CHECKING:
    from signoff.policy.recipients import AddressPattern
    from signoff.policy.shell.patterns import CommandPattern
    from signoff.policy.url_conditions import UrlPattern

READ_ONLY = "read-only"
NETWORK_READS = "network-reads"

_EFFECTS = ("writes", "runs", "sends", "changes", "discloses", "waits")
_DIALECTS = ("postgres", "sqlite", "mysql", "duckdb", "mssql", "oracle", "generic")
_ARGUMENT = text("the name of an argument")
_DOES = (
    each(choice(_EFFECTS, name="effect"), f"a list of {', '.join(_EFFECTS)}", name="effects")
    .into(frozenset)
    .about("The effects it has; in rules that ask or deny.")
)


def _refuse_does(entries: Mapping[str, ConfigValue], wary: bool) -> None:
    if wary and "does" in entries:
        raise entries["does"].wrong_key("`does` makes no sense where a rule allows", f"use `{READ_ONLY}`, or a pattern")


def _path_pattern(written: str) -> str:
    PathCondition(patterns=(written,))
    return written


_DIRECTORIES = texts(made(read_directory, "a directory", "bad path"), "a list of directories")
_PATH = MappingFormat(
    {
        "matches": texts(made(_path_pattern, "a path", "bad path"), "a list of patterns").about("Patterns."),
        "inside": _DIRECTORIES.about("The path must be inside one of these directories."),
        "outside": _DIRECTORIES.about("The path must be outside these directories."),
        "secret": FLAG.about("Whether it is a place where secrets are stored."),
        "hidden": FLAG.about("Whether a name in it begins with a dot."),
        "code": FLAG.about("Whether it is a file that is run later."),
        "sensitive": FLAG.about(
            "Whether it is secret or code, or of a kind that often is: settings, scripts, backups."
        ),
    },
    short="matches",
    description="The paths in the call: patterns such as src/**, or directories and kinds of paths.",
    name="path",
    schema={"minProperties": 1},
)


def _read_path(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    entries = _PATH.entries(spot)
    if not entries:
        raise spot.wrong("this is empty, so it requires nothing", "write `matches` or `inside`")
    found = _PATH.values(entries)
    if not {"matches", "inside"} >= found.keys():
        from signoff.policy.place_conditions import KINDS, PlaceCondition  # imports the list of secret places

        for kind in KINDS:
            if kind in found:
                yield PlaceCondition(kind=kind, wanted=found[kind], every=wary)
        if "outside" in found:
            yield PlaceCondition(outside=found["outside"], every=wary)
    if "matches" in found or "inside" in found:
        yield PathCondition(patterns=found.get("matches", ()), directories=found.get("inside", ()), every=wary)


def _command_pattern(written: str) -> CommandPattern | str:
    from signoff.policy.shell.patterns import CommandPattern

    return CommandPattern(written) if written not in (READ_ONLY, NETWORK_READS) else written


_COMMAND = MappingFormat(
    {
        "matches": texts(
            made(_command_pattern, "a command pattern", "bad command pattern"), "a list of command patterns"
        ).about("read-only, network-reads, or patterns."),
        "does": _DOES,
        "secret": Format(ConfigValue.flag, {"const": True}).about(
            "Whether it reads places where secrets are stored; in rules that ask or deny."
        ),
        "arg": _ARGUMENT.about("The argument that holds the command."),
    },
    short="matches",
    needs=("matches", "does", "secret"),
    description="A shell command: read-only, network-reads, a pattern such as git status, or a list.",
    name="command",
)


def _read_command(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    from signoff.policy.commands import ARGUMENT, CommandCondition, found_in

    entries = _COMMAND.entries(spot)
    _refuse_does(entries, wary)
    if "secret" in entries and (wary or not entries["secret"].flag()):
        raise entries["secret"].wrong_key("`secret: true` is for rules that ask or deny", f"use `{READ_ONLY}`")
    found = _COMMAND.values(entries)
    patterns: tuple[CommandPattern | str, ...] = found.get("matches", ())
    for item, pattern in zip(entries["matches"].one_or_more(""), patterns, strict=True) if patterns else ():
        if not wary and pattern == NETWORK_READS:
            raise item.wrong(f"`{NETWORK_READS}` is for rules that allow", "use `does: sends`")
        if not wary and not isinstance(pattern, str) and not found_in(pattern):
            fix = "write it as it is typed in a shell, word by word"
            raise item.wrong(f"no command is ever like {shown(item.value)}", fix)
    yield CommandCondition(
        patterns=tuple(one for one in patterns if not isinstance(one, str)),
        read_only=READ_ONLY in patterns,
        network=NETWORK_READS in patterns,
        does=found.get("does", frozenset()),
        secret="secret" in found,
        argument=found.get("arg", ARGUMENT),
        every=wary,
    )


_SQL = MappingFormat(
    {
        "is": Format(lambda spot: spot.choice((READ_ONLY,)), {"const": READ_ONLY}),
        "operation": texts(text("an operation, such as select"), "a list of operations").about(
            "select, insert, update …"
        ),
        "tables": NAME_GLOBS.about("Tables, as patterns."),
        "does": _DOES,
        "dialect": choice(_DIALECTS),
        "arg": _ARGUMENT.about("The argument that holds the SQL."),
    },
    short="is",
    needs=("is", "operation", "tables", "does"),
    description="SQL: read-only, or operations, tables and effects.",
    name="sql",
)


def _read_sql(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    from signoff.policy.statements import ARGUMENT, SqlCondition

    entries = _SQL.entries(spot)
    _refuse_does(entries, wary)
    found = _SQL.values(entries)
    yield SqlCondition(
        read_only="is" in found,
        operations=frozenset(map(str.lower, found.get("operation", ()))),
        tables=found.get("tables", ()),
        does=found.get("does", frozenset()),
        dialect=found.get("dialect", ""),
        argument=found.get("arg", ARGUMENT),
        every=wary,
    )


def _url_pattern(written: str) -> UrlPattern:
    from signoff.policy.url_conditions import UrlPattern

    return UrlPattern(written)


_URL = MappingFormat(
    {
        "matches": texts(
            made(_url_pattern, "a host or a URL pattern", "bad URL pattern"), "a list of hosts or URL patterns"
        ).about("Hosts or URL patterns."),
        "scheme": texts(text("a scheme"), "a list of schemes").about("https, http …"),
        "method": texts(text("a method"), "a list of methods").about("GET, POST …"),
        "private": FLAG.about("Whether the host is on a private network."),
        "arg": _ARGUMENT.about("The argument that holds the URL."),
    },
    short="matches",
    needs=("matches", "scheme", "method", "private"),
    description="The URLs in the call: hosts or URL patterns.",
    name="url",
)


def _read_url(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    from signoff.policy.url_conditions import UrlCondition

    found = _URL.read(spot)
    yield UrlCondition(
        patterns=found.get("matches", ()),
        schemes=frozenset(map(str.lower, found.get("scheme", ()))),
        methods=frozenset(map(str.upper, found.get("method", ()))),
        private=found.get("private"),
        argument=found.get("arg", ""),
        every=wary,
    )


def _read_count(spot: ConfigValue) -> int:
    if isinstance(spot.value, bool) or not isinstance(spot.value, int) or spot.value < 0:
        raise spot.wrong("this should be a whole number", 'write it as in `count: {"<=": 3}`')
    return spot.value


def _address_pattern(written: str) -> AddressPattern:
    from signoff.policy.recipients import AddressPattern

    return AddressPattern(written)


_NUMBER = Format(_read_count, {"type": "integer", "minimum": 0})
_ADDRESSES = texts(made(_address_pattern, "a domain or an address", "bad address"), "a list of domains or addresses")
_RECIPIENTS = MappingFormat(
    {
        "domains": _ADDRESSES.about(
            "Domains such as acme.com or *.acme.com: for a rule that allows, of all recipients; otherwise of one."
        ),
        "outside": _ADDRESSES.about("At least one recipient is outside these domains; in rules that ask or deny."),
        "all": _ADDRESSES.about("Every recipient matches one of these."),
        "any": _ADDRESSES.about("At least one recipient matches one of these; in rules that ask or deny."),
        "none": _ADDRESSES.about("No recipient matches any of these."),
        "count": MappingFormat(dict.fromkeys(SIGNS, _NUMBER), short="equals", schema={"minProperties": 1}).about(
            'The number of recipients, such as {"<=": 3}.'
        ),
        "arg": _ARGUMENT.about("The argument that holds the recipients."),
    },
    short="domains",
    needs=("domains", "outside", "all", "any", "none", "count"),
    description="The recipients of a message: domains or addresses. To allow, all must match; to ask or deny, one.",
    name="recipients",
)


def _read_recipients(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    from signoff.policy.recipients import RecipientsCondition

    entries = _RECIPIENTS.entries(spot)
    for key in ("any", "outside"):
        if wary and key in entries:
            raise entries[key].wrong_key(f"`{key}` makes no sense where a rule allows", "use `domains` or `all`")
    found = _RECIPIENTS.values(entries)
    argument = found.pop("arg", "")
    count = tuple(found.pop("count", {}).items())
    yield RecipientsCondition(**found, count=count, argument=argument, every=wary)


def _read_money(spot: ConfigValue) -> Decimal:
    from signoff.policy.amounts import read_amount

    amount = read_amount(spot.value)
    if isinstance(amount, str) or amount.currency:
        raise spot.wrong("this should be a number", 'write it as in `amount: {">": 100, currency: EUR}`')
    return amount.number


_MONEY = Format(_read_money, {"anyOf": [{"type": "number"}, text()]}, "money")
_AMOUNT = MappingFormat(
    {
        **dict.fromkeys(SIGNS, _MONEY),
        "currency": matching(
            "[A-Za-z]{3}", "a currency, such as EUR", "bad currency {}", "write its three letters, as in `EUR`"
        ).about("Three letters."),
        "arg": made(KeyPath.read, "the name of an argument", "bad key").about("The argument that holds the amount."),
    },
    short="equals",
    needs=SIGNS,
    description='An amount of money, such as {">": 100, currency: EUR}.',
    name="amount",
)


def _read_amount(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    from signoff.policy.amounts import KEY, AmountCondition

    found = _AMOUNT.read(spot)
    bounds = {sign: found[sign] for sign in SIGNS if sign in found}
    low = max((bounds[sign] for sign in (">", ">=") if sign in bounds), default=None)
    high = min((bounds[sign] for sign in ("<", "<=") if sign in bounds), default=None)
    if low is not None and high is not None:
        strict = bounds.get(">") == low or bounds.get("<") == high
        if low > high or (low == high and strict):
            raise spot.wrong("no amount is in this range")
    yield AmountCondition(tuple(bounds.items()), found.get("currency", "").upper(), found.get("arg", KEY), wary)


FACTS: Mapping[str, Format[Any]] = {
    "path": _PATH.by(_read_path),
    "amount": _AMOUNT.by(_read_amount),
    "recipients": _RECIPIENTS.by(_read_recipients),
    "url": _URL.by(_read_url),
    "command": _COMMAND.by(_read_command),
    "sql": _SQL.by(_read_sql),
}
"""The conditions by key. Each reader takes the value and `wary`: as in an allow rule, which must be sure."""
