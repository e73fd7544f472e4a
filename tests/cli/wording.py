"""What the program says, word for word: kept in `__snapshots__/`, a file for each module of tests.

`assert said.err == wording(request=one)` compares the whole text. A text that is not on file fails.
`./dev test tests/cli --snapshot-update` writes down what is said now; the diff of `__snapshots__/` is for review.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: (?:[A-Z]{3,5}\b|[+-]\d\d))?")
"""A time that people are told. Leave it in place where the test has fixed the clock."""
AGO = re.compile(r"\b(?:just now|\d+ s ago)")
"""How long ago something was that the test did itself: more than a second, on a busy machine."""
NOT_YAML = re.compile(r"(?<=this is not YAML: )[^\n]+")
"""What the parser says: PyYAML's own words, or those of libyaml where it has that."""
RECURSION = re.compile(r"(?:maximum recursion depth|Stack overflow)[^\n]*")
"""What Python says about JSON that is nested too deep, in other words with each version."""


class Wording:
    """Names for what differs in each run, and the texts on file.

    A value gets a number and keeps it for the whole test: `<request-1>` stands for one id wherever it is printed. An id
    that the test does not name stays as it is, so that the text does not fit. What a pattern finds has no number.
    """

    def __init__(self, snapshot: SnapshotAssertion, directory: Path) -> None:
        self._snapshot = snapshot.with_defaults(matcher=self._stable)
        self._names = {str(directory): "<dir>"}
        self._patterns: dict[re.Pattern[str], str] = {}
        self._given = Counter[str]()

    def __call__(self, **values: str | Iterable[str] | re.Pattern[str]) -> SnapshotAssertion:
        """The text on file for this place in the test, to compare with; `values` are named from here on."""
        for name, value in values.items():
            if isinstance(value, re.Pattern):
                self._patterns[value] = f"<{name}>"
                continue
            for one in [value] if isinstance(value, str) else value:
                assert len(one) > 3, f"{one!r} would be found in the middle of words"
                if one not in self._names:
                    self._given[name] += 1
                    self._names[one] = f"<{name}-{self._given[name]}>"
        return self._snapshot

    def named(self, text: str) -> str:
        """The text as it is kept: names in the place of values."""
        assert text, "nothing was said"
        odd = {char for char in text if char != "\n" and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
        assert odd == set(), "whoever reads the file would not see these"
        for value in sorted(self._names, key=len, reverse=True):
            text = text.replace(value, self._names[value])
        for pattern, name in self._patterns.items():
            text = pattern.sub(name, text)
        return text

    def _stable(self, *, data: object, path: object) -> _Text:
        assert isinstance(data, str), "only texts are kept here"
        return _Text(self.named(data))


class _Text:
    """Is written to the file as it is, without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text
