"""Conditions on what a call does, from a file: `command`, `sql`, `url`, `amount`, and what kind of place a path is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from signoff.policy.glob import BadGlob
from signoff.policy.keypath import BadKey, KeyPath
from signoff.policy.match import Condition
from signoff.policy.operators import SIGNS
from signoff.policy.parse_value import read_globs
from signoff.policy.paths import BadPath, read_directory
from signoff.policy.phrases import shown
from signoff.policy.spot import ConfigValue

if TYPE_CHECKING:
    from signoff.policy.recipients import AddressPattern

READ_ONLY = "read-only"
_EFFECTS = ("writes", "runs", "sends", "changes", "discloses", "waits")
_DIALECTS = ("postgres", "sqlite", "mysql", "duckdb", "mssql", "oracle", "generic")


def read_command(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    """`command: git status`, `command: [read-only, npm test]`, `command: {matches: …, does: …, arg: …}`."""
    # They bring parsers that few policies need.
    from signoff.policy.commands import ARGUMENT, CommandCondition, found_in
    from signoff.policy.shell.patterns import BadCommand, CommandPattern

    entries = _entries(spot, ("matches", "does", "secret", "arg"), needs=("matches", "does", "secret"))
    patterns: list[CommandPattern] = []
    read_only = False
    for item in entries["matches"].one_or_more("a list of command patterns") if "matches" in entries else ():
        text = item.text("a command pattern")
        if text == READ_ONLY:
            read_only = True
            continue
        try:
            pattern = CommandPattern(text)
        except (BadCommand, BadGlob) as error:
            raise item.wrong(f"bad command pattern {shown(text)}", str(error)) from error
        if not wary and not found_in(pattern):
            raise item.wrong(
                f"no command is ever like {shown(text)}", "write it as it is typed in a shell, word by word"
            )
        patterns.append(pattern)
    yield CommandCondition(
        patterns=tuple(patterns),
        read_only=read_only,
        does=_does(entries, wary),
        secret=_secret(entries, wary),
        argument=entries["arg"].text("the name of an argument") if "arg" in entries else ARGUMENT,
        every=wary,
    )


def _secret(entries: dict[str, ConfigValue], wary: bool) -> bool:
    if "secret" not in entries:
        return False
    if wary or not entries["secret"].flag():
        raise entries["secret"].wrong_key("`secret: true` is for rules that ask or deny", f"use `{READ_ONLY}`")
    return True


def read_sql_condition(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    """`sql: read-only`, `sql: {is: read-only, operation: …, tables: …, does: …, dialect: …, arg: …}`."""
    from signoff.policy.statements import ARGUMENT, SqlCondition  # few policies need it

    keys = ("is", "operation", "tables", "does", "dialect", "arg")
    entries = _entries(spot, keys, first="is", needs=keys[:4])
    if "is" in entries:
        entries["is"].choice((READ_ONLY,))
    operations = entries["operation"].one_or_more("a list of operations") if "operation" in entries else ()
    yield SqlCondition(
        read_only="is" in entries,
        operations=frozenset(item.text("an operation, such as select").lower() for item in operations),
        tables=tuple(read_globs(entries["tables"], over_names=True)) if "tables" in entries else (),
        does=_does(entries, wary),
        dialect=entries["dialect"].choice(_DIALECTS) if "dialect" in entries else "",
        argument=entries["arg"].text("the name of an argument") if "arg" in entries else ARGUMENT,
        every=wary,
    )


def read_url_condition(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    """`url: api.example.com`, `url: {matches: …, scheme: …, method: …, private: …, arg: …}`."""
    from signoff.policy.urls import BadUrl, UrlCondition, UrlPattern  # few policies need it

    keys = ("matches", "scheme", "method", "private", "arg")
    entries = _entries(spot, keys, needs=keys[:4])
    patterns: list[UrlPattern] = []
    for item in entries["matches"].one_or_more("a list of hosts or URL patterns") if "matches" in entries else ():
        try:
            patterns.append(UrlPattern(item.text("a host or a URL pattern")))
        except (BadUrl, BadGlob) as error:
            raise item.wrong(f"bad URL pattern {shown(item.value)}", str(error)) from error
    yield UrlCondition(
        patterns=tuple(patterns),
        schemes=_lower(entries, "scheme", str.lower),
        methods=_lower(entries, "method", str.upper),
        private=entries["private"].flag() if "private" in entries else None,
        argument=entries["arg"].text("the name of an argument") if "arg" in entries else "",
        every=wary,
    )


def read_recipients_condition(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    """`recipients: acme.com`, `recipients: {domains: …, outside: …, all: …, any: …, none: …, count: …, arg: …}`."""
    from signoff.policy.recipients import RecipientsCondition  # few policies need it

    keys = ("domains", "outside", "all", "any", "none", "count", "arg")
    entries = _entries(spot, keys, first="domains", needs=keys[:6])
    for key in ("any", "outside"):
        if wary and key in entries:
            raise entries[key].wrong_key(f"`{key}` makes no sense where a rule allows", "use `domains` or `all`")
    yield RecipientsCondition(
        domains=_addresses(entries, "domains"),
        outside=_addresses(entries, "outside"),
        all=_addresses(entries, "all"),
        any=_addresses(entries, "any"),
        none=_addresses(entries, "none"),
        count=_count(entries["count"]) if "count" in entries else (),
        argument=entries["arg"].text("the name of an argument") if "arg" in entries else "",
        every=wary,
    )


def _addresses(entries: dict[str, ConfigValue], key: str) -> tuple[AddressPattern, ...]:
    from signoff.policy.recipients import AddressPattern, BadAddress

    found: list[AddressPattern] = []
    for item in entries[key].one_or_more("a list of domains or addresses") if key in entries else ():
        try:
            found.append(AddressPattern(item.text("a domain or an address")))
        except (BadAddress, BadGlob) as error:
            raise item.wrong(f"bad address {shown(item.value)}", str(error)) from error
    return tuple(found)


def _count(spot: ConfigValue) -> tuple[tuple[str, int], ...]:
    bounds = spot.entries(tuple(SIGNS)) if isinstance(spot.value, dict) else {"equals": spot}
    for bound in bounds.values():
        if isinstance(bound.value, bool) or not isinstance(bound.value, int) or bound.value < 0:
            raise bound.wrong("this should be a whole number", 'write it as in `count: {"<=": 3}`')
    return tuple((sign, bound.value) for sign, bound in bounds.items())


def read_amount_condition(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    """`amount: {">": 100, currency: EUR, arg: total}`."""
    from signoff.policy.amounts import KEY, AmountCondition  # few policies need it

    entries = _entries(spot, (*SIGNS, "currency", "arg"), first="equals", needs=tuple(SIGNS))
    bounds = tuple((sign, _decimal(entries[sign])) for sign in SIGNS if sign in entries)
    _check_range(spot, dict(bounds))
    currency = entries["currency"].text("a currency, such as EUR") if "currency" in entries else ""
    if currency and not (len(currency) == 3 and currency.isascii() and currency.isalpha()):
        raise entries["currency"].wrong(f"bad currency {shown(currency)}", "write its three letters, as in `EUR`")
    yield AmountCondition(bounds, currency.upper(), _key(entries["arg"]) if "arg" in entries else KEY, wary)


def read_places(entries: dict[str, ConfigValue], wary: bool) -> Iterator[Condition]:
    """What `path` says about the kind of place: `outside`, `secret`, `hidden`, `code`, `sensitive`."""
    from signoff.policy.place_conditions import KINDS, PlaceCondition  # it brings the list of secret places

    for kind in KINDS:
        if kind in entries:
            yield PlaceCondition(kind=kind, wanted=entries[kind].flag(), every=wary)
    if "outside" in entries:
        directories = [_directory(item) for item in entries["outside"].one_or_more("a list of directories")]
        yield PlaceCondition(outside=tuple(directories), every=wary)


def _directory(spot: ConfigValue) -> str:
    try:
        return read_directory(spot.text("a directory"))
    except (BadGlob, BadPath) as error:
        raise spot.wrong(f"bad path {shown(spot.value)}", str(error)) from error


def _entries(
    spot: ConfigValue, known: tuple[str, ...], *, first: str = "matches", needs: tuple[str, ...]
) -> dict[str, ConfigValue]:
    """The keys under a condition; what is no mapping stands for its first key."""
    if not isinstance(spot.value, dict):
        return {first: spot}
    entries = spot.entries(known)
    if not any(key in entries for key in needs):
        raise spot.wrong("this asks for nothing", f"write one of {', '.join(f'`{key}`' for key in needs)}")
    return entries


def _does(entries: dict[str, ConfigValue], wary: bool) -> frozenset[str]:
    if "does" not in entries:
        return frozenset()
    if wary:
        raise entries["does"].wrong_key("`does` makes no sense where a rule allows", f"use `{READ_ONLY}`, or a pattern")
    return frozenset(item.choice(_EFFECTS) for item in entries["does"].one_or_more(f"a list of {', '.join(_EFFECTS)}"))


def _lower(entries: dict[str, ConfigValue], key: str, case: Callable[[str], str]) -> frozenset[str]:
    items = entries[key].one_or_more(f"a list of {key}s") if key in entries else ()
    return frozenset(case(item.text(f"a {key}")) for item in items)


def _decimal(spot: ConfigValue) -> Decimal:
    from signoff.policy.amounts import read_amount

    amount = read_amount(spot.value)
    if isinstance(amount, str) or amount.currency:
        raise spot.wrong("this should be a number", 'write it as in `amount: {">": 100, currency: EUR}`')
    return amount.number


def _check_range(spot: ConfigValue, bounds: dict[str, Decimal]) -> None:
    low = max((bounds[sign] for sign in (">", ">=") if sign in bounds), default=None)
    high = min((bounds[sign] for sign in ("<", "<=") if sign in bounds), default=None)
    if low is not None and high is not None:
        strict = bounds.get(">") == low or bounds.get("<") == high
        if low > high or (low == high and strict):
            raise spot.wrong("no amount is in this range")


def _key(spot: ConfigValue) -> KeyPath:
    written = spot.text("the name of an argument")
    try:
        return KeyPath.read(written)
    except BadKey as error:
        raise spot.wrong(f"bad key {shown(written)}", str(error)) from error
