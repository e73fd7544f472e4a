"""Convert llm-do's shell rules to the rules of a toolset.

In llm-do, a rule is the start of a command, the first match decides, and commands run without a shell. signoff parses
the command. So a rule is converted only if it lets nothing more run; everything else is asked about, or refused if
llm-do refuses commands that no rule names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from signoff.config.llm_do.notes import Note, NoteKind
from signoff.errors import Place, PolicyError
from signoff.policy.engine import Policy
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue

TOOL = "shell"
_RULE_KEYS = ("pattern", "approval_required", "allowed", "approval_required_if_args", "description")
_PLAIN = re.compile(r"[\w./:=@%+,-]+(?: +[\w./:=@%+,-]+)*")
"""Words that mean the same to a shell, in a pattern, and as the start of a text."""

READONLY = "wc find grep head tail sort uniq cat ls git_log git_diff git_show git_status"
"""What llm-do's `shell_readonly` runs unasked. Some options of `find` are asked about."""
_FIND_ASKS = ("-exec", "-execdir", "-delete")


def unnamed(blocked: bool) -> dict[str, Any]:
    """The last rule: for a command that no rule names. `blocked`: llm-do refuses it."""
    if blocked:
        return {"otherwise": "deny", "tool": TOOL, "reason": "no rule of this shell names the command"}
    return {"ask": {"tool": TOOL}, "reason": "no rule names this command"}


def shell_readonly() -> dict[str, Any]:
    """The built-in shell with llm-do's list, which runs fewer commands unasked than signoff's own."""
    rules: list[dict[str, Any]] = [{"ask": {"tool": TOOL, "command": [f"find {option}" for option in _FIND_ASKS]}}]
    rules += [_allow(pattern.replace("_", " ")) for pattern in READONLY.split()]
    return {"use": "shell_readonly", "policy": [*rules, unnamed(blocked=True)]}


def shell_file_ops() -> dict[str, Any]:
    """The same for `shell_file_ops`: `ls` runs unasked, `mv` asks, and llm-do refuses the rest."""
    rules = [_allow("ls"), {"ask": {"tool": TOOL, "command": "mv *"}}]
    return {"use": "shell_file_ops", "policy": [*rules, unnamed(blocked=True)]}


def shell_entry(rules: ConfigValue | None, default: ConfigValue | None) -> tuple[dict[str, Any], list[Note]]:
    """A toolset for a shell with these rules, and a note about each."""
    written: list[dict[str, Any]] = []
    notes: list[Note] = []
    stricter: list[str] = []
    blocked = _is_blocked(default, notes)
    for rule in rules.items("a list of rules") if rules is not None and rules.value not in (None, []) else ():
        made, note, pattern = _rule(rule, stricter, blocked=blocked)
        written += made
        notes.append(note)
        if [*map(next, map(iter, made))] != ["allow"]:
            stricter.append(pattern)
    return {"use": "shell_file_ops", "policy": [*written, unnamed(blocked)]}, notes


def _is_blocked(default: ConfigValue | None, notes: list[Note]) -> bool:
    """Whether llm-do refuses commands that no rule names."""
    if default is None or default.value is None:
        return True
    known = default.entries(what="a mapping with `allowed` and `approval_required`")
    for key, spot in known.items():
        if key not in ("allowed", "approval_required"):
            notes.append(_unknown(spot, key))
    if "allowed" in known and not known["allowed"].flag():
        return True
    if "approval_required" in known and not known["approval_required"].flag():
        what = "llm-do runs every other command without a question, but without a shell; here it may be a line of bash"
        fix = "write rules for the commands that need no question"
        notes.append(Note(NoteKind.LEFT, known["approval_required"].place, f"{what}, so it is asked about", fix))
    return False


def _rule(rule: ConfigValue, stricter: Sequence[str], *, blocked: bool) -> tuple[list[dict[str, Any]], Note, str]:
    """Convert a rule. Returns the new rules, a note, and the start of the commands it is about.

    `stricter` are the starts of earlier rules that do not let everything run. In llm-do the first match decides, by the
    start of the text; signoff compares words. So a rule after one of these that could match the same command allows
    nothing. `blocked`: what is not converted is refused, like commands that no rule names; otherwise it is asked about.
    """
    outcome = "refused" if blocked else "asked about"
    keys = rule.entries(what="a mapping with `pattern`")
    raw = keys["pattern"].value if "pattern" in keys else ""
    pattern = raw.strip() if isinstance(raw, str) else ""
    words = pattern.removesuffix("*").rstrip()
    place = keys["pattern"].place if "pattern" in keys else rule.place

    def left(why: str, at: Place = place) -> tuple[list[dict[str, Any]], Note, str]:
        fix = "write a rule for the commands that are meant"
        return [], Note(NoteKind.LEFT, at, f"{shown(pattern)} {why}, so it is {outcome}", fix), words

    for key, spot in keys.items():
        if key not in _RULE_KEYS:
            return left(f"has {shown(key)}, which has no equivalent here", spot.key_place)
    if not _PLAIN.fullmatch(words):
        return left("is not a plain prefix of a command")
    made = _made(words, keys, blocked=blocked)
    if "allow" in made[-1]:
        if words != pattern:
            return left("contains a `*`, which is a plain character in llm-do")
        if near := [one for one in stricter if one.startswith(words) or words.startswith(one)]:
            return left(f"comes after {shown(near[0])}, which may decide the same commands")
    try:
        Policy.from_rules(made)
    except PolicyError as error:
        return left(f"cannot be written as a rule ({error.what})")
    return made, Note(NoteKind.CARRIED, place, f"{shown(pattern)}: {_told(made)}"), words


def _made(words: str, keys: dict[str, ConfigValue], *, blocked: bool) -> list[dict[str, Any]]:
    """The new rules. Above an `otherwise`, a rule that asks must match the whole command, like one that allows."""
    if "allowed" in keys and not keys["allowed"].flag():
        return [{"deny": {"tool": TOOL, "command": words}}]
    if "approval_required" not in keys or keys["approval_required"].flag():
        return [{"ask": {"tool": TOOL, "command": f"{words} *" if blocked else words}}]
    options = _texts(keys["approval_required_if_args"]) if "approval_required_if_args" in keys else []
    asks = [{"ask": {"tool": TOOL, "command": [f"{words} {option}" for option in options]}}] if options else []
    return [*asks, _allow(words)]


def _allow(words: str) -> dict[str, Any]:
    return {"allow": {"tool": TOOL, "command": f"{words} *"}}


def _texts(spot: ConfigValue) -> list[str]:
    return [item.text("an argument") for item in (spot.items("a list of arguments") if spot.value != [] else ())]


def _told(rules: Sequence[dict[str, Any]]) -> str:
    return ", then ".join(f"{effect} {match['command']}" for rule in rules for effect, match in rule.items())


def _unknown(spot: ConfigValue, key: str) -> Note:
    return Note(
        NoteKind.LEFT, spot.key_place, f"{shown(key)} has no equivalent here", "what no rule names is asked about"
    )
