"""What `git config` sets: keys that name no program. Of any other nobody knows which command of git runs its value."""

from __future__ import annotations

import re
from collections.abc import Sequence

from signoff.policy.shell.runners import is_command_key

_HARMLESS = re.compile(
    r"(?i)user\.|init\.defaultbranch|core\.(?:autocrlf|eol|safecrlf|ignorecase|filemode|quotepath|longpaths|symlinks"
    r"|whitespace|abbrev|precomposeunicode|compression|logallrefupdates|sparsecheckout\w*|commentchar|preloadindex"
    r"|untrackedcache)\Z|push\.(?:default|autosetupremote|followtags)|pull\.(?:rebase|ff)|fetch\.(?:prune\w*|parallel)"
    r"|rebase\.(?:autostash|autosquash|updaterefs)|merge\.(?:ff|conflictstyle|log|stat)\Z|rerere\.|advice\.|color\."
    r"|diff\.(?:algorithm|renames|colormoved|mnemonicprefix|context|noprefix|interhunkcontext)\Z|status\.|blame\.|log\."
    r"|branch\.(?:autosetup\w+|sort|.*\.(?:remote|merge|rebase|description|pushremote))\Z|column\.|gc\.|pack\.|index\."
    r"|remote\.(?:pushdefault|.*\.(?:url|pushurl|fetch|prune|tagopt|partialclonefilter|promisor))\Z|feature\."
    r"|commit\.(?:gpgsign|verbose|status|cleanup)|tag\.|stash\.|submodule\.(?:recurse|fetchjobs|.*\.(?:url|branch|active))"
    r"\Z|http\.(?:postbuffer|version|lowspeed\w+|maxrequests)|protocol\.version\Z|extensions\.|clone\.defaultremotename"
    r"|transfer\.|checkout\.|worktree\.|credential\.usehttppath|safe\.directory|i18n\.|maintenance\.(?:auto|strategy)"
)
"""Settings that name no program, and no file with more settings. Of others nobody knows what sets them to work."""
NOT_HARMLESS = frozenset("""
    blame.ignorerevsfile fsck.skiplist gc.recentobjectshook log.showsignature
    remote.promisor remote.partialclonefilter remote.vcs
""".split())  # fmt: skip
"""Exceptions, without what is between section and key: they run a program, or git shows what is in a file."""
_URL_KEYS = re.compile(r"(?i)(?:remote|submodule)\..*\.(?:url|pushurl)")
_REMOTE_KEYS = re.compile(r"(?i)remote\.pushdefault|branch\..*\.(?:remote|pushremote)")
_NAME = re.compile(r"\w[\w-]*(?:\.[\w-]+)*", re.ASCII)
_ADDRESS = re.compile(
    r"(?:https?|ssh|git)://(?=[\w\[])(?!.*/\.\.)[^\s'\"`\\|;<>{}]+|(?:[\w.-]+@)?\w[\w.-]*:(?!:)(?![^@]*::)[\w~./-]+",
    re.ASCII,
)
"""A repository on another machine."""
_READS = frozenset("--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool --list -l".split())
_EDITS = ("--rename-section", "--edit", "-e", "-f", "--file", "--blob")
_UNSETS = frozenset("--unset --unset-all --remove-section".split())
_VERBS = (["set"], ["unset"], ["remove-section"])


def sets_unknown(words: Sequence[str]) -> str:
    """Return the word by which `git config` with these words may set a program that git runs; "" if it does not."""
    operands = [word for word in words if not word.startswith("-")]
    if not _READS.isdisjoint(words) or operands[:1] in (["get"], ["list"]):
        return ""
    edits = next((word for word in words if word.partition("=")[0] in _EDITS), "")
    if edits or operands[:1] in (["rename-section"], ["edit"]):
        return edits or operands[0]
    unsets = not _UNSETS.isdisjoint(words) or operands[:1] in (["unset"], ["remove-section"])
    key, *values = operands[1:] if operands[:1] in _VERBS else operands or [""]
    if unsets or (not values and "." in key):
        return ""
    section, _, rest = key.lower().partition(".")
    if _HARMLESS.match(key) is None or is_command_key(key) or f"{section}.{rest.rpartition('.')[2]}" in NOT_HARMLESS:
        return key
    if _URL_KEYS.fullmatch(key) or _REMOTE_KEYS.fullmatch(key):
        named = _REMOTE_KEYS.fullmatch(key) is not None
        return next((value for value in values if not is_elsewhere(value, named=named)), "")
    return next((value for value in values if value.startswith("!")), "")


def is_elsewhere(repository: str, *, named: bool) -> bool:
    """Whether a repository is on another machine, or one that the settings name.

    One on this machine has settings of its own, which name programs that `git push` runs.
    """
    return _ADDRESS.fullmatch(repository) is not None or (named and _NAME.fullmatch(repository) is not None)


def pushes_to(command: str, operands: Sequence[str]) -> str:
    """Return the operand of a command of git that may name a repository on this machine to push to; or ""."""
    if command == "push":
        return next((word for word in operands[:1] if not is_elsewhere(word, named=True)), "")
    if command in ("remote", "submodule") and operands[:1] in (["add"], ["set-url"]):
        urls = operands[2:] if command == "remote" else operands[1:2]
        return next((word for word in urls if not is_elsewhere(word, named=False)), "")
    return ""
