"""Translations of the pages (i18n). Texts of people and models are not translated."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

LOCALES = Path(__file__).parent / "locales"
"""One file for each language, with the same tables and keys in each."""
FIRST = "en"
"""The fallback language."""
COOKIE = "signoff_language"


@dataclass(frozen=True, slots=True)
class Language:
    """One language. Called with a key, it returns the text with the values filled in."""

    code: str
    texts: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        text = self.texts[key]
        return text.format(**values) if values else text

    def known(self, key: str, otherwise: str) -> str:
        """Return the text of a key from elsewhere, or `otherwise` if there is none."""
        return self.texts.get(key, otherwise)

    def count(self, key: str, number: int, **values: object) -> str:
        """Return the text for a number of things: `KEY.one` or `KEY.other`."""
        return self(f"{key}.{'one' if number == 1 else 'other'}", n=number, **values)

    def group(self, prefix: str) -> dict[str, str]:
        """Return all texts below a key, by the rest of their keys, for the script."""
        return {
            key.removeprefix(f"{prefix}."): text for key, text in self.texts.items() if key.startswith(f"{prefix}.")
        }

    @property
    def name(self) -> str:
        """The name of the language in that language."""
        return self.texts["language"]


@lru_cache(maxsize=1)
def languages() -> Mapping[str, Language]:
    """Return all languages by code."""
    found = ((file.stem, tomllib.loads(file.read_text(encoding="utf-8"))) for file in sorted(LOCALES.glob("*.toml")))
    return {code: Language(code, dict(_flat(texts))) for code, texts in found}


def language_for(wanted: str, accepted: str) -> Language:
    """Return the chosen language, else the one that the browser prefers among those available."""
    known = languages()
    for code in (wanted, *_by_liking(accepted)):
        if code in known:
            return known[code]
    return known[FIRST]


def _by_liking(accepted: str) -> list[str]:
    """Return the codes of an `Accept-Language` header, most wanted first; `de-AT` counts as `de`."""
    liked: list[tuple[float, str]] = []
    for part in accepted[:1_000].split(","):
        code, _, weight = part.partition(";q=")
        try:
            quality = float(weight or 1)
        except ValueError:
            continue
        if quality > 0:
            liked.append((-quality, code.strip().lower().partition("-")[0]))
    return [code for _, code in sorted(liked, key=lambda one: one[0])]


def _flat(texts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in texts.items():
        key = f"{above}.{name}" if above else name
        if isinstance(value, dict):
            yield from _flat(cast("Mapping[str, Any]", value), key)
        else:
            yield key, str(value)
