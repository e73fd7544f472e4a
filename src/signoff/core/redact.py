"""Mask secrets (redaction) in what people see and what is recorded, and restore them after an edit.

A secret is recognised by the name of its key, by its value if the caller declared it, or by its shape. A mask says
what it covers: `⟦masked 2: GitHub token⟧`. What a person must see to decide (a path, a host, a recipient, an
amount) is never masked as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from signoff.core.credential import (
    Credential,
    credentials_in,
    may_hide_own,
    own_credentials_in,
    secret_name,
    target_name,
)
from signoff.core.visible_text import CLOSE, OPEN, visible
from signoff.errors import CannotCanonicalise, EditRefused

if TYPE_CHECKING:
    from signoff.core.declared_secrets import DeclaredSecrets

_DEEPEST = 100
_STEM = "masked"
_STEMS = re.compile(f"{OPEN}{_STEM}('*) ")
_DECLARED = "declared secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """One masked place in a value."""

    path: str
    """Where it is, such as `headers.Authorization` or `env[2]`."""
    why: str
    """What kind of secret it was taken for, and how it was recognised."""
    placeholder: str
    """The text shown instead; unique among the masks."""
    span: tuple[int, int] | None = None
    """The part of the original text that it covers; None: the whole value, of whatever type."""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """Arguments that are safe to show, and what was masked in them."""

    args: Mapping[str, Any]
    masked: tuple[Masked, ...] = ()


def redact(args: Mapping[str, Any], *, secrets: Iterable[str] = ()) -> Redacted:
    """Mask secrets in `args`. The values in `secrets` are masked wherever they occur, in keys too."""
    redactor = Redactor(secrets, avoid=args)
    return Redacted(args=redactor.mapping(args), masked=tuple(redactor.masked))


def redact_text(text: str, *, secrets: Iterable[str] = ()) -> str:
    """Mask secrets in a text."""
    return Redactor(secrets, avoid=text).text(text)


def redacted_beginning(text: str, *, longest: int, secrets: Iterable[str] = ()) -> str:
    """Return a text with its secrets masked; of one with more characters the beginning, which says so.

    Masked first, then cut: half a secret would not be recognised.
    """
    if len(text) <= longest:
        return redact_text(text, secrets=secrets)
    read = read_ahead(text, longest)
    redactor = Redactor(secrets, avoid=read)
    shown = without_half_a_mask(redactor.text(read)[:longest], redactor.stem)
    return f"{shown.removesuffix('…')}… ({len(text):,} characters)"


def read_ahead(text: str, longest: int) -> str:
    """What must be masked of a text of which so many characters are shown: a secret may go on after them."""
    read = text[: longest + _AHEAD]
    # Declared secrets are recognised before an ellipsis, others only as whole words.
    return read if len(read) == len(text) else f"{read.rpartition(' ')[0] or read}…"


_AHEAD = 20_000
"""Characters that are read beyond what is shown. No secret is longer, except those that are declared."""


def without_half_a_mask(text: str, stem: str) -> str:
    """Remove a mask that was cut in half at the end of a text: its bracket would be escaped as text."""
    before, bracket, rest = text.rpartition(OPEN)
    is_half = bracket and CLOSE not in rest and f"{stem} ".startswith(rest[: len(stem) + 1])
    return before if is_half else text


@dataclass(slots=True)
class Redactor:
    """Masks one value after the other and numbers the masks through: for values that are shown together."""

    secrets: Iterable[str] = ()
    masked: list[Masked] = field(default_factory=list[Masked])
    avoid: object = None
    """All that will be masked, or shown beside a mask: no placeholder is used that already occurs in it."""
    _declared: DeclaredSecrets | None = field(init=False, default=None)
    _stem: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if secrets := tuple(dict.fromkeys(self.secrets)):
            from signoff.core.declared_secrets import declared  # most processes have none

            self._declared = declared(secrets)

    @property
    def stem(self) -> str:
        """The start of every placeholder, after its bracket. Computed with the first mask: most values need none."""
        if not self._stem:
            taken = {len(found[1]) for text in _texts(self.avoid, 0) for found in _STEMS.finditer(text)}
            self._stem = _STEM + "'" * next(size for size in count() if size not in taken)
        return self._stem

    def mapping(self, args: Mapping[str, Any], path: str = "") -> dict[str, Any]:
        """Mask a mapping of arguments, by name, value and shape."""
        return self._mapping(args, path, "", 0)

    def text(self, text: str, path: str = "") -> str:
        """Mask a text, by value and shape."""
        return self._masked_text(text, path, self.found(text))

    def found(self, text: str) -> list[Credential]:
        """The secrets that would be masked in a text, in order."""
        return _merged([*self._known_in(text), *credentials_in(text)])

    def begun(self, text: str) -> int | None:
        """Where a declared secret begins that is not over where the text ends after a blank. None: nowhere."""
        if self._declared is None or not self._declared.spaced:
            return None
        from signoff.core.unescaped import unescaped

        found = [span[0] for one in unescaped(text) if (span := self._declared.begun(one)) is not None]
        return min(found, default=None)

    def visible(self, text: str, *, lines: bool = False, output: bool = False) -> str:
        """Make hidden characters of a masked text visible, and keep its masks."""
        shown = visible(text, lines=lines, output=output)
        return _spelled(self.stem).sub(rf"{OPEN}\1{CLOSE}", shown) if self.masked else shown

    def _value(self, value: object, name: str, path: str, kind: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise CannotCanonicalise(f"the value is nested more than {_DEEPEST} deep")
        if isinstance(value, str):
            return self._string(value, name, path, kind)
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[str, Any]", value), path, kind, depth)
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[object]", value)
            return [self._value(item, name, f"{path}[{index}]", kind, depth + 1) for index, item in enumerate(items)]
        if kind and isinstance(value, (int, float)) and not isinstance(value, bool) and kind not in _NEVER_NUMBERS:
            return self._mask(path, kind, f"named like a secret ({kind})")
        return value

    def _mapping(self, args: Mapping[str, Any], path: str, kind: str, depth: int) -> dict[str, Any]:
        masked: dict[str, Any] = {}
        for name, item in args.items():
            shown = self.text(name, f"{path} (a name)".lstrip())
            where = f"{path}.{shown}" if path else shown
            inherited = "" if target_name(name) else secret_name(name) or kind
            masked[shown] = self._value(item, name, where, inherited, depth + 1)
        return masked

    def _string(self, value: str, name: str, path: str, kind: str) -> str:
        if kind and value.strip():
            return self._named(value, path, kind)
        if not target_name(name):
            return self.text(value, path)
        shaped = credentials_in(value) if "://" in value else ()
        partial = [found for found in shaped if found.end - found.start < len(value.strip())]
        return self._masked_text(value, path, _merged([*self._known_in(value), *partial]))

    def _named(self, value: str, path: str, kind: str) -> str:
        why = f"named like a secret ({kind}), {len(value):,} characters"
        if kind in _FILES and _PATH.fullmatch(value):
            return value
        if url := _ORIGIN.match(value):
            # The host is a target, so it stays visible.
            rest = [Credential(url.end(), len(value), kind)] if url.end() < len(value) else []
            return self._masked_text(value, path, _merged([*rest, *self._known_in(value), *credentials_in(value)]))
        if kind != "cookie" and _SHELL.search(value):
            why += ", with shell syntax among them"
        return self._mask(path, kind, why)

    def _known_in(self, text: str) -> Iterator[Credential]:
        """What is masked wherever it stands, in the name of a target too: declared secrets, and signoff's own."""
        if self._declared is None and not may_hide_own(text):
            yield from own_credentials_in(text)
            return
        from signoff.core.hiding_places import Clues, readings

        clues = Clues() if self._declared is None else self._declared.clues
        for one, at in readings(text, clues, self._is_promising):
            for start, end in self._declared.spans(one) if self._declared is not None else ():
                yield Credential(at + start, at + end, _DECLARED)
            for own in own_credentials_in(one.text):
                if (span := one.origin(own.start, own.end)) is not None:
                    yield Credential(at + span[0], at + span[1], own.kind)

    def _is_promising(self, text: str) -> bool:
        return may_hide_own(text) or (self._declared is not None and self._declared.may_stand_in(text))

    def _masked_text(self, text: str, path: str, found: Sequence[Credential]) -> str:
        pieces: list[str] = []
        end = 0
        for one in found:
            why = "declared as a secret" if one.kind == _DECLARED else f"looks like a secret ({one.kind})"
            pieces += text[end : one.start], self._mask(path, one.kind, why, (one.start, one.end))
            end = one.end
        return "".join((*pieces, text[end:])) if pieces else text

    def _mask(self, path: str, kind: str, why: str, span: tuple[int, int] | None = None) -> str:
        placeholder = f"{OPEN}{self.stem} {len(self.masked) + 1}: {kind}{CLOSE}"
        self.masked.append(Masked(path=path, why=why, placeholder=placeholder, span=span))
        return placeholder


_NEVER_NUMBERS = frozenset({"token", "auth", "cookie"})
_FILES = frozenset({"private key", "ssh key", "gpg key"})
_PATH = re.compile(r"(?:~|\.{0,2})/[^\s]{1,400}|[A-Za-z]:\\[^\s]{1,400}")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://(?:[^\s/?#@]{0,256}@)?[^\s/?#@:]{1,256}(?::\d{1,5})?(?=[/?#]|$)")
_SHELL = re.compile(r"[;|`\n]|&&|\$\(|[<>]\s")


def visible_around(masks: Iterable[str], text: str, *, lines: bool = False) -> str:
    """Make hidden characters of a masked text visible, and keep these masks."""
    shown, kept = visible(text, lines=lines), {visible(mask): mask for mask in masks}
    return _spelled(rf"{_STEM}'*").sub(lambda found: kept.get(found[0], found[0]), shown) if kept else shown


def _spelled(stem: str) -> re.Pattern[str]:
    """Match a mask in a text that was made visible, which escapes its brackets, too."""
    return re.compile(rf"{re.escape(visible(OPEN))}({stem} \d+: [^{OPEN}{CLOSE}]*){re.escape(visible(CLOSE))}")


def _merged(found: Iterable[Credential]) -> list[Credential]:
    """Sort the spans; merge those that overlap, and adjacent ones of the same kind."""
    merged: list[Credential] = []
    for one in sorted(found, key=lambda found: (found.start, -found.end)):
        last = merged[-1] if merged else None
        if last and (one.start < last.end or (one.start == last.end and one.kind == last.kind)):
            merged[-1] = Credential(last.start, max(last.end, one.end), last.kind)
        else:
            merged.append(one)
    return merged


def _texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth > _DEEPEST:
        return
    elif isinstance(value, Mapping):
        for name, item in cast("Mapping[str, object]", value).items():
            yield name
            yield from _texts(item, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in cast("Sequence[object]", value):
            yield from _texts(item, depth + 1)


# --- restoring secrets after an edit ---

_KEY = object()
_NUMBERED = re.compile(rf"{_STEM}'* (\d{{1,9}})")


@dataclass(frozen=True, slots=True)
class _Hidden:
    where: tuple[object, ...]
    value: Any = field(repr=False)
    whole: bool


def restore(edited: Mapping[str, Any], original: Mapping[str, Any], redacted: Redacted) -> dict[str, Any]:
    """Put the secrets of `original` back into `edited`, which was made from `redacted.args`, where masks are untouched.

    A masked value may also be replaced or removed. Raises `EditRefused` if a mask was moved, copied or changed: it is
    unclear what was meant.
    """
    return _Restorer(original, redacted).restored(edited)


class _Restorer:
    def __init__(self, original: Mapping[str, Any], redacted: Redacted) -> None:
        masked = {one.placeholder: one for one in redacted.masked}
        self._stem = redacted.masked[0].placeholder.partition(" ")[0] if redacted.masked else ""
        self._mask = re.compile(rf"{self._stem} \d+: [^{OPEN}{CLOSE}]*{CLOSE}" if self._stem else r"(?!)")
        self._hidden = dict(self._find(original, redacted.args, masked, ()))
        self._here: dict[tuple[object, ...], list[str]] = {}
        for mask, hidden in self._hidden.items():
            self._here.setdefault(hidden.where, []).append(mask)
        self._seen: set[str] = set()
        self._problems: list[str] = []

    def restored(self, edited: Mapping[str, Any]) -> dict[str, Any]:
        args = self._put_back(edited, ())
        if self._problems:
            raise EditRefused(tuple(self._problems))
        return args

    def _find(
        self, original: Any, shown: Any, masked: Mapping[str, Masked], where: tuple[object, ...]
    ) -> Iterator[tuple[str, _Hidden]]:
        if isinstance(shown, str):
            for placeholder in self._mask.findall(shown):
                if placeholder not in masked:
                    continue
                span = masked[placeholder].span
                yield placeholder, _Hidden(where, original if span is None else original[slice(*span)], span is None)
        elif isinstance(shown, dict):
            pairs = zip(original.items(), cast("dict[str, Any]", shown).items(), strict=True)
            for (name, item), (shown_name, shown_item) in pairs:
                yield from self._find(name, shown_name, masked, (*where, _KEY))
                yield from self._find(item, shown_item, masked, (*where, shown_name))
        elif isinstance(shown, list):
            for index, (item, shown_item) in enumerate(zip(original, cast("list[Any]", shown), strict=True)):
                yield from self._find(item, shown_item, masked, (*where, index))

    def _put_back(self, value: Any, where: tuple[object, ...]) -> Any:
        if isinstance(value, str):
            return self._text(value, where)
        if isinstance(value, Mapping):
            items = cast("Mapping[str, Any]", value).items()
            return {self._text(name, (*where, _KEY)): self._put_back(item, (*where, name)) for name, item in items}
        if isinstance(value, list):
            return [self._put_back(item, (*where, index)) for index, item in enumerate(cast("list[Any]", value))]
        return value

    def _text(self, text: str, where: tuple[object, ...]) -> Any:
        masks = [mask for mask in self._mask.findall(text) if mask in self._hidden]
        rest = self._replaced(text, lambda _: "")
        if self._is_broken(rest, where, masks):
            self._refuse(where, "a mask was changed; leave it as it is, or replace all of it")
        for mask in masks:
            hidden = self._hidden[mask]
            if hidden.where != where or mask in self._seen:
                self._refuse(where, "a mask was moved or copied here; the value behind it belongs elsewhere")
            elif hidden.whole and rest:
                self._refuse(where, "text was added to a mask; leave it as it is, or replace all of it")
            self._seen.add(mask)
        if masks and self._hidden[masks[0]].whole:
            return self._hidden[masks[0]].value
        return self._replaced(text, lambda hidden: str(hidden.value))

    def _replaced(self, text: str, by: Callable[[_Hidden], str]) -> str:
        """Replace every mask in a text that was made here."""
        known = self._hidden
        return self._mask.sub(lambda mask: by(known[mask[0]]) if mask[0] in known else mask[0], text)

    def _is_broken(self, rest: str, where: tuple[object, ...], masks: Sequence[str]) -> bool:
        if not self._stem:
            return False
        if self._stem in rest:
            return True
        missing = set(self._here.get(where, ())).difference(masks)
        if not missing:
            return False
        begun = {found[0][:end] for found in _NUMBERED.finditer(rest) for end in range(found.start(1), found.end() + 1)}
        return OPEN in rest or CLOSE in rest or any(mask[1:].partition(":")[0] in begun for mask in missing)

    def _refuse(self, where: tuple[object, ...], problem: str) -> None:
        spot = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where if part is not _KEY)
        self._problems.append(f"{spot.lstrip('.') or 'a name'}: {problem}")
