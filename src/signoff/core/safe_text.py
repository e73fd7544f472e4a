"""Texts that are safe to show and store: secrets masked, hidden characters escaped, masks kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from signoff.core.decision import ApprovalDecision
from signoff.core.grant import Grant, grant_for, grant_text
from signoff.core.moment import Zone, in_utc
from signoff.core.redact import Redactor, read_ahead, redact, visible_around, without_half_a_mask
from signoff.core.request import ApprovalRequest
from signoff.core.terms import ArgCondition, Scope
from signoff.core.visible_text import CLOSE, OPEN, has_hidden, visible


def safe_text(text: str, *, secrets: Iterable[str] = (), lines: bool = False, output: bool = False) -> str:
    """Mask secrets and make hidden characters visible; line breaks are kept with `lines`, blanks with `output`."""
    redactor = Redactor(secrets, avoid=text)
    return redactor.visible(redactor.text(text), lines=lines, output=output)


def safe_beginning(
    text: str, *, longest: int, secrets: Iterable[str] = (), lines: bool = False, output: bool = False
) -> str:
    """Return the beginning of a text, safe to show. Masked first, then cut: half a secret would not be recognised.

    A text that cannot be masked is not shown. `output` is as for `visible`.
    """
    read = read_ahead(text, longest)
    redactor = Redactor(secrets, avoid=read)
    try:
        safe = redactor.visible(redactor.text(read), lines=lines, output=output)
    except Exception as error:  # whatever is wrong with a text, what it is about goes on, and is recorded
        return f"(a text of {len(text):,} characters that could not be masked: {type(error).__name__})"
    if len(safe) <= longest and read is text:
        return safe
    return f"{without_half_a_mask(safe[:longest], redactor.stem)}… ({len(text):,} characters)"


def in_one_line(text: str) -> str:
    """Return an error with the hints below it, which are indented, on one line. Not safe to show yet."""
    return _HINT.sub(lambda found: f"{found[1] or ';'} ", text)


_HINT = re.compile(r"([.:;?!]?)\n {2,}")


def error_line(error: BaseException, *, secrets: Iterable[str] = ()) -> str:
    """Return an error with the hints below it on one line, safe to show."""
    return safe_text(in_one_line(str(error)), secrets=secrets)


def kept_text(text: str, *, lines: bool = False) -> str:
    """Show a stored text that was made safe before: keep its markers and masks, escape anything hidden besides."""
    shown = visible(text, lines=lines, output=True)  # its blanks are as they were left then
    for bracket in (OPEN, CLOSE):
        shown = shown.replace(visible(bracket), bracket)
    return shown


def printable(text: str) -> str:
    """Return a stored text that was made safe before; escape it if it contains hidden characters nevertheless."""
    return kept_text(text) if has_hidden(text) else text


def redacted_text(text: str, *, lines: bool = False) -> str:
    """Escape a text that was redacted elsewhere. What looks like a mask is kept as a mask."""
    return _MASK.sub(rf"{OPEN}\1{CLOSE}", visible(text, lines=lines))


_MASK = re.compile(rf"{re.escape(visible(OPEN))}(masked'* \d+: [^{OPEN}{CLOSE}]*){re.escape(visible(CLOSE))}")


def safe_grant_text(grant: Grant, *, secrets: Iterable[str] = (), zone: Zone = in_utc) -> str:
    """Describe a grant. Its summary was made safe when it was stored; the values in its pattern are made safe here."""
    redactor = Redactor(secrets, avoid=grant.tool)
    tool, masks = redactor.text(grant.tool), [one.placeholder for one in redactor.masked]
    if grant.pattern is None:
        return grant_text(replace(grant, tool=tool), zone)
    pattern, more = masked_pattern(grant.pattern, secrets=secrets)
    return visible_around((*masks, *more), grant_text(replace(grant, tool=tool, pattern=pattern), zone))


def grant_line(grant: Grant, *, secrets: Iterable[str] = (), zone: Zone = in_utc) -> str:
    """Describe a grant on one line that can be printed anywhere."""
    return printable(safe_grant_text(grant, secrets=secrets, zone=zone))


def spelled_out(request: ApprovalRequest, decision: ApprovalDecision, zone: Zone = in_utc) -> str:
    """Say exactly what an answer will be remembered as in a store, as `signoff grants` shows it.

    The session is an exception: `signoff grants` shows its id, but the person who answers is in it.
    """
    call = request.call
    assert call is not None, "offers are made for calls only"
    grant = grant_for(request, call, decision, request.title)
    here = replace(grant, where="") if grant.scope is Scope.SESSION else grant
    return grant_line(here, secrets=request.secrets, zone=zone)


def masked_pattern(
    pattern: Sequence[ArgCondition], *, secrets: Iterable[str] = ()
) -> tuple[tuple[ArgCondition, ...], list[str]]:
    """Mask secrets in a pattern, also by the names of arguments. Returns the pattern and the masks."""
    shown = redact({one.arg: one.value for one in pattern}, secrets=secrets)
    # Names may be masked too, so conditions are matched by position.
    conditions = zip(pattern, shown.args.items(), strict=True)
    masked = tuple(replace(one, arg=name, value=value) for one, (name, value) in conditions)
    return masked, [one.placeholder for one in shown.masked]
