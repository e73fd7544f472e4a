"""Check the words of `test`, `[[` and `printf`, which are part of the shell: some shells evaluate numbers in them.

bash, zsh, mksh and others differ in what they evaluate, and nobody says which of them will run the line. To evaluate
`path[$(id)]` runs `id`, `PATH=1` sets a variable, and the name of a variable stands for an expression in its value. So
where any shell expects a number, there must be one, in digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from itertools import cycle, pairwise

from signoff.policy.shell.languages.trouble import Trouble
from signoff.policy.shell.line import Unknown, Word

_EVALUATES = "runs: evaluates this as an expression in some shells, which may run commands"
_COMPARES = frozenset("-eq -ne -lt -le -gt -ge".split())
_OF_TEXTS = frozenset("-n -z -e -f -d -r -w -x -s -h -L".split())
_SUBSCRIPTS = frozenset(("-v", "-R"))
"""Whether a variable is set: `-v 'x[$(id)]'`."""
_UNARY = _OF_TEXTS | frozenset("-b -c -p -S -g -u -k -O -G".split())
_BINARY = _COMPARES | frozenset("= == != =~ -nt -ot -ef".split())
_INTEGER = re.compile(r"[-+]?\d{1,18}", re.ASCII)

_CONVERSION = re.compile(r"%[-+ #0']*\d*(?:\.\d*)?(?:hh|h|ll|l|j|z|t|L)?([a-zA-Z%])", re.ASCII)
_TEXTS = frozenset("sbcq")
_NUMBERS = frozenset("diouxXeEfFgGaA")
_WRITTEN_PERCENT = re.compile(r"\\(?:0*45|[xuU]0*25)")
"""A percent sign by its number. zsh replaces it before it looks for conversions."""
_NUMBER = re.compile(r"(?:[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|0[xX][0-9a-fA-F]+))?", re.ASCII)


def test_trouble(words: Sequence[Word]) -> Trouble | None:
    """Return what keeps `test` or `[` with these words from running unasked, or None."""
    for word in words:
        if word.glob:
            return Trouble(word.text, "unknown: is a pattern that the shell may expand to several operands")
    if any(word.unknown is not Unknown.NOT for word in words) and not _has_plain_form(words):
        return Trouble("", "unknown: is given a word that is only known when it runs, and may be an operator")
    texts = ["", *(word.text for word in words), ""]
    for at, (word, after) in enumerate(pairwise(texts)):
        if word in _SUBSCRIPTS:
            return Trouble(word, _EVALUATES)
        if word == "-t" and after not in ("", "]") and not _INTEGER.fullmatch(after):
            return Trouble(after, _EVALUATES)
        if word in _COMPARES:
            for number in (texts[at - 1], after):
                if not _INTEGER.fullmatch(number):
                    return Trouble(number, _EVALUATES)
    return None


def condition_trouble(words: Sequence[Word]) -> Trouble | None:
    """Return what keeps `[[` with these words from running unasked, or None.

    Operators stand in it as such, whatever the words beside them turn out to be. To dash it is no keyword, but a
    program that is not there.
    """
    if not words or words[-1].text != "]]":
        return Trouble("[[", "unknown: does not end with `]]`")
    words = words[:-1]
    words = words[1:] if len(words) > 1 and _is(words[0], {"!"}) else words
    if len(words) == 1:
        return None
    if len(words) == 2 and _is(words[0], _UNARY):
        return None
    if len(words) != 3 or not _is(words[1], _BINARY):
        return Trouble("[[", "unknown: is no condition that every shell reads alike")
    if words[1].text in _COMPARES:
        for number in (words[0], words[2]):
            if number.unknown is not Unknown.NOT or not _INTEGER.fullmatch(number.text):
                return Trouble(number.text, _EVALUATES)
    return None


def _is(word: Word, texts: Set[str]) -> bool:
    return word.text in texts and word.unknown is Unknown.NOT and not word.glob


def _has_plain_form(words: Sequence[Word]) -> bool:
    """Whether every word has its place, whatever it turns out to be: `-n "$x"`, `"$x" = y`, with `!` before it."""
    words = words[:-1] if words and words[-1].text == "]" else words
    words = words[1:] if words and words[0].text == "!" and len(words) > 2 else words
    if any(word.unknown is Unknown.ANY for word in words):
        return False
    known = [word.text if word.unknown is Unknown.NOT else None for word in words]
    if len(known) == 2:
        return known[0] in _OF_TEXTS
    return len(known) == 1 or (len(known) == 3 and known[1] in ("=", "==", "!="))


def printf_trouble(words: Sequence[Word]) -> Trouble | None:
    """Return what keeps `printf` with these words from running unasked, or None."""
    texts = [word.text for word in words]
    if texts in (["--help"], ["--version"]):
        return None
    rest = words[1:] if texts[:1] == ["--"] else words
    if not rest:
        return None
    template, *values = rest
    if template.text.startswith("-v"):
        return Trouble(template.text, "changes: sets a variable of the shell")
    if template.glob or template.unknown is not Unknown.NOT or (template.text.startswith("-") and rest is words):
        return Trouble(template.text, "unknown: is not a plain format")
    if _WRITTEN_PERCENT.search(template.text):
        return Trouble(template.text, "unknown: holds a `%` that is written as a number")
    kinds = _conversions(template.text)
    if isinstance(kinds, Trouble):
        return kinds
    if not _NUMBERS.intersection(kinds):
        return None
    for kind, value in zip(cycle(kinds), values, strict=False):
        if value.glob or value.unknown is Unknown.ANY:
            return Trouble(value.text, "unknown: may become several numbers")
        if kind in _NUMBERS and not _NUMBER.fullmatch(value.text):
            return Trouble(value.text, _EVALUATES)
    return None


def _conversions(template: str) -> list[str] | Trouble:
    """Return the letters of the conversions in a format, in order, or trouble if one is not plain."""
    kinds: list[str] = []
    at = 0
    while (at := template.find("%", at)) >= 0:
        found = _CONVERSION.match(template, at)
        if found is None or not (found[1] in _TEXTS or found[1] in _NUMBERS or found[0] == "%%"):
            return Trouble(template[at : at + 4], "unknown: is a conversion that may set a variable or evaluate a word")
        if found[0] != "%%":
            kinds.append(found[1])
        at = found.end()
    return kinds
