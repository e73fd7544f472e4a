"""Check whether a repository's own git configuration makes read-only commands run programs or read files elsewhere.

Settings that are known to be harmless are listed; all others count. The files are parsed here, because running git to
ask would already be unsafe. The user's own configuration in the home directory is trusted and not checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from signoff.policy.phrases import cut
from signoff.policy.shell.git_settings import NOT_HARMLESS
from signoff.regular_file import bytes_of

MOST_BYTES = 256 * 1024
MOST_MODULES = 200

_WHOLE = frozenset("""
    advice alias am apply author blame branch checkout clean clone color column commit committer credential fetch
    fsck gc gitflow github grep gui http i18n index init log maintenance notes pack pull push rebase receive reflog
    remote repack rerere reset revert safe showbranch stash status submodule switch tag transfer url user versionsort
    vscode-merge-base worktree
""".split())  # fmt: skip
"""Sections whose settings run nothing in a read-only command. An alias cannot override a command of git itself.
Some of their settings are not harmless: `NOT_HARMLESS`."""
_KEYS = frozenset("""
    core.abbrev core.autocrlf core.bare core.bigfilethreshold core.checkstat core.commentchar core.commitgraph
    core.compression core.deltabasecachelimit core.eol core.filemode core.fscache core.hidedotfiles core.ignorecase
    core.ignorestat core.logallrefupdates core.longpaths core.loosecompression core.multipackindex
    core.packedgitlimit core.packedgitwindowsize core.precomposeunicode core.preloadindex core.protecthfs
    core.protectntfs core.quotepath core.repositoryformatversion core.safecrlf core.sharedrepository
    core.sparsecheckout core.sparsecheckoutcone core.splitindex core.symlinks core.trustctime core.untrackedcache
    core.usereplacerefs core.warnambiguousrefs core.whitespace
    diff.algorithm diff.autorefreshindex diff.binary diff.color diff.colormoved diff.colormovedws diff.context
    diff.dirstat diff.ignoresubmodules diff.indentheuristic diff.interhunkcontext diff.mnemonicprefix diff.noprefix
    diff.relative diff.renamelimit diff.renames diff.statgraphwidth diff.statnamewidth diff.submodule
    diff.suppressblankempty diff.tool diff.wordregex diff.wserrorhighlight diff.xfuncname
    extensions.objectformat extensions.refstorage extensions.worktreeconfig
    feature.manyfiles gpg.format gpg.mintrustlevel
    lfs.repositoryformatversion lfs.access lfs.locksverify
    merge.conflictstyle merge.ff merge.log merge.renamelimit merge.renames merge.stat merge.tool merge.verbosity
""".split())  # fmt: skip
_BOOLEAN = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0", ""})
_IF_BOOLEAN = re.compile(r"core\.fsmonitor|pager\..*")
"""Settings that name a program unless their value is a boolean."""

_ON_READING = ("post-index-change", "reference-transaction")
"""Hooks that commands such as `git status` run."""

_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_ENTRY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=(.*))?")
_REVISION = re.compile(r"(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})?")
_GITDIR = re.compile(r"gitdir:\s*(.+?)\s*")


class Setting(NamedTuple):
    """One setting of a configuration."""

    section: str
    below: str
    key: str
    value: str

    @property
    def name(self) -> str:
        middle = f".{self.below}" if self.below else ""
        return f"{self.section}{middle}.{self.key}"


class Odd(Exception):
    """A file that cannot be read, or not fully understood; the message says why."""


def repository_runs(directory: str) -> str:
    """The first unsafe setting of the repository that contains `directory`, or of one around it; empty if none.

    If something cannot be read or understood, the result says so.
    """
    seen: set[str] = set()
    try:
        here = os.path.realpath(directory)
        while True:
            for git_directory in _git_directories(here):
                if why := _directory_runs(git_directory, seen, here):
                    return why
            if here == os.path.dirname(here):
                return ""
            here = os.path.dirname(here)
    except Odd as odd:
        return str(odd)
    except (OSError, ValueError) as error:
        return f"the repository's configuration cannot be read ({error})"


def _git_directories(directory: str) -> Iterator[str]:
    """Where git would look for a repository's own files, from this directory."""
    dot = os.path.join(directory, ".git")
    if os.path.isdir(dot):
        yield dot
    elif os.path.lexists(dot):
        yield _pointed(dot, _GITDIR)
    if os.path.lexists(os.path.join(directory, "HEAD")):  # its other parts may be elsewhere: see its `commondir`
        yield directory


def _pointed(file: str, form: re.Pattern[str]) -> str:
    """The directory that a file names."""
    match = form.fullmatch(_text(file).rstrip("\n"))
    if match is None:
        raise Odd(f"{file} does not name a directory")
    return os.path.join(os.path.dirname(file), match[1])


def _directory_runs(git_directory: str, seen: set[str], top: str = "") -> str:
    """The first unsafe setting of one repository, of the one it is a worktree of, or of its submodules.

    `top` is the directory where its files are checked out, if known.
    """
    git_directory = os.path.realpath(git_directory)
    if git_directory in seen:
        return ""
    seen.add(git_directory)
    if len(seen) > MOST_MODULES:
        raise Odd("there are too many repositories to check")
    for name in ("config", "config.worktree"):
        file = os.path.join(git_directory, name)
        if os.path.lexists(file):
            for setting in settings(_text(file)):
                fine = harmless(setting) or _own_worktree(setting, git_directory) or _only_revisions(setting, top)
                if not (fine or _hooks_of_writes(setting, top)):
                    return setting.name
    if os.path.lexists(common := os.path.join(git_directory, "commondir")):
        if why := _directory_runs(_pointed(common, re.compile("(.+)")), seen, top):
            return why
    for module in _modules(os.path.join(git_directory, "modules")):
        if why := _directory_runs(module, seen):
            return f"{why} (of the submodule in {module})"
    return ""


def _modules(directory: str, depth: int = 0) -> Iterator[str]:
    """The repositories of submodules, whose names may contain slashes."""
    if not os.path.isdir(directory):
        return
    if depth > 8:
        raise Odd(f"{directory} is nested too deeply to check")
    with os.scandir(directory) as entries:
        for number, entry in enumerate(entries):
            if number > MOST_MODULES:
                raise Odd(f"{directory} holds too many repositories to check")
            if os.path.lexists(os.path.join(entry.path, "HEAD")):
                yield entry.path
            elif entry.is_dir():
                yield from _modules(entry.path, depth + 1)


def _own_worktree(setting: Setting, git_directory: str) -> bool:
    """Whether a setting names the worktree of a submodule that points back to this repository."""
    if (setting.section, setting.key) != ("core", "worktree"):
        return False
    dot = os.path.join(git_directory, setting.value, ".git")
    return os.path.isfile(dot) and os.path.realpath(_pointed(dot, _GITDIR)) == git_directory


def _only_revisions(setting: Setting, top: str) -> bool:
    """Whether a setting names a file of the repository that holds only revisions.

    Git shows the content of other files in its error message.
    """
    if (setting.section, setting.key) != ("blame", "ignorerevsfile") or not top:
        return False
    file = os.path.join(top, setting.value)
    if not re.fullmatch(r"[\w.-]+", setting.value) or os.path.islink(file):
        return False
    if not os.path.lexists(file):
        return True
    return all(_REVISION.fullmatch(line.partition("#")[0].strip(" \t\r")) for line in _text(file).split("\n"))


def _hooks_of_writes(setting: Setting, top: str) -> bool:
    """Whether a setting names a directory of hooks, as husky does, and none of them runs when git only reads."""
    if (setting.section, setting.key) != ("core", "hookspath") or not top:
        return False
    directory = os.path.join(top, setting.value)
    return os.path.isdir(directory) and not any(os.path.lexists(os.path.join(directory, one)) for one in _ON_READING)


def harmless(setting: Setting) -> bool:
    """Whether a setting makes no read-only git command run a program or read elsewhere."""
    name = f"{setting.section}.{setting.key}"
    if setting.section in _WHOLE:
        return name not in NOT_HARMLESS
    if _IF_BOOLEAN.fullmatch(name):
        return setting.value.lower() in _BOOLEAN
    return name in _KEYS


def settings(text: str) -> Iterator[Setting]:
    """Parse a configuration. Raises `Odd` if a line is not understood."""
    if "\0" in text:
        raise Odd("the repository's configuration holds a NUL")
    section = below = ""
    for line in text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"):
        if line.endswith("\\"):  # whether it really continues depends on earlier comments and quotes
            raise Odd("the repository's configuration has a line that continues on the next line")
        rest = line
        if match := _SECTION.match(rest):
            section, dot, old = match[1].lower().partition(".")
            below = old if dot else re.sub(r"\\(.)", r"\1", match[2] or "")
            rest = rest[match.end() :]
        rest = rest.strip()
        if not rest or rest[0] in "#;":
            continue
        entry = _ENTRY.fullmatch(rest)
        if entry is None or not section:
            raise Odd(f"the repository's configuration has a line that is not understood: {cut(rest, 60)}")
        yield Setting(section, below, entry[1].lower(), _value(entry[2]))


def _value(written: str | None) -> str:
    """A value without its comment and quotes; a key without a value is true."""
    if written is None:
        return "true"
    if '"' in written or "\\" in written:
        return written.strip().strip('"')
    return re.split("[#;]", written)[0].strip()


def _text(file: str) -> str:
    """The content of a small regular file."""
    data = bytes_of(file, MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise Odd(f"{file} is too large to check")
    return data.decode("utf-8", "surrogateescape")
