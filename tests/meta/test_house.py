"""Facts about the house: how large it is, and that every class in it is found by searching for its name."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "signoff"
BORROWED = PACKAGE / "compat"
"""Has the names of other libraries, which programs that move here import."""
_CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)


def test_no_class_has_the_name_of_another(capsys: pytest.CaptureFixture[str]) -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    texts = {file: file.read_text() for file in sorted(PACKAGE.rglob("*.py"))}
    for file, text in texts.items():
        for name in _CLASS.findall(text) if BORROWED not in file.parents else ():
            homes[name].append(str(file.relative_to(PACKAGE)))
    twice = {name: files for name, files in homes.items() if len(files) > 1}
    lines = sum(text.count("\n") for text in texts.values())
    with capsys.disabled():
        print(f"\n{len(texts)} files, {lines:,} lines, {len(homes)} classes, {len(twice)} names twice")
    assert len(homes) > 500
    assert twice == {}
