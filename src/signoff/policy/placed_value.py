"""A value in a document together with its place, so that errors name the line and column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from signoff.errors import Place, PolicyError
from signoff.policy.document import Document, KeyStep, KeyTrail
from signoff.policy.operators import kind_of
from signoff.policy.phrases import did_you_mean, shown


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """One value from a file, to be converted. The readers raise `PolicyError` with the place."""

    document: Document
    value: Any
    trail: KeyTrail = ()

    @classmethod
    def top(cls, document: Document) -> ConfigValue:
        return cls(document, document.value)

    @property
    def place(self) -> Place:
        return self.document.place_of(self.trail)

    @property
    def key_place(self) -> Place:
        return self.document.place_of_key(self.trail)

    def wrong(self, what: str, fix: str = "") -> PolicyError:
        """Return the error to raise about this value."""
        return PolicyError(what, place=self.place, fix=fix)

    def wrong_key(self, what: str, fix: str = "") -> PolicyError:
        """Return the error to raise about the key of this value."""
        return PolicyError(what, place=self.key_place, fix=fix)

    def child(self, step: KeyStep) -> ConfigValue:
        return ConfigValue(self.document, self.value[step], (*self.trail, step))

    def entries(self, known: Iterable[str] | None = None, *, what: str = "a mapping") -> dict[str, ConfigValue]:
        """Return the value as a mapping, each key with its place. Unknown keys are refused if `known` is given."""
        value = self.value
        if not isinstance(value, dict):
            raise self.wrong(f"this should be {what}, not {kind_of(value)}")
        entries = {key: self.child(key) for key in cast("dict[str, Any]", value)}
        if known is not None:
            names = tuple(known)
            for key, spot in entries.items():
                if key not in names:
                    raise spot.wrong_key(f"unknown key {shown(key)}", did_you_mean(key, names))
        return entries

    def items(self, what: str) -> list[ConfigValue]:
        """Return the items of a non-empty list."""
        value = self.value
        if not isinstance(value, list):
            raise self.wrong(f"this should be {what}, not {kind_of(value)}")
        if not value:
            raise self.wrong("the list is empty", f"it should be {what}")
        return [self.child(at) for at in range(len(cast("list[Any]", value)))]

    def one_or_more(self, what: str) -> Iterator[ConfigValue]:
        """Yield the value, or every item if it is a list."""
        if isinstance(self.value, list):
            yield from self.items(what)
        else:
            yield self

    def text(self, what: str = "a text") -> str:
        """Return the value as a text that is not blank."""
        if not isinstance(self.value, str):
            fix = "write it in quotes" if isinstance(self.value, (int, float)) else ""
            raise self.wrong(f"this should be {what}, not {kind_of(self.value)}", fix)
        if not self.value.strip():
            raise self.wrong("the text is empty", f"it should be {what}")
        return self.value

    def line(self, what: str = "a text") -> str:
        """Like `text`, on one line."""
        return " ".join(self.text(what).split())

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong(f"this should be true or false, not {kind_of(self.value)}")
        return self.value

    def count(self) -> int:
        """Return the value as an integer that is at least 1."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.wrong(f"this should be a whole number, not {kind_of(self.value)}")
        if self.value < 1:
            raise self.wrong(f"{self.value} is too small", "it should be 1 or more")
        return self.value

    def choice(self, known: Iterable[str]) -> str:
        """Return the value as one of several words."""
        words = tuple(known)
        word = self.text(f"one of {', '.join(words)}")
        if word not in words:
            raise self.wrong(f"unknown value {shown(word)}", did_you_mean(word, words))
        return word
