"""Which file a program's name refers to, and which environment variables the program gets.

A variable can make a harmless program run another one (`LD_PRELOAD`, `GIT_EXTERNAL_DIFF`, `LESSOPEN` …), so a command
that runs without approval gets an environment built from scratch.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from signoff.core.credential import secret_name
from signoff.policy.shell.simple_command import PATH as DIRECTORIES

FIXED_PATH = ":".join(DIRECTORIES)
MARK = "SIGNOFF_CALL"
"""The environment variable that marks every process of a call, so that all of them can be found and killed."""

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*)*")
_PREFIXES = ("LD_", "DYLD_", "BASH_FUNC_", "GIT_", "LESS", "SIGNOFF_")
_NAMES = frozenset("""
    BASH_ENV BASHOPTS BASH_LOADABLES_PATH BASH_XTRACEFD CDPATH ENV EXECIGNORE GLOBIGNORE IFS POSIXLY_CORRECT
    PROMPT_COMMAND PS0 PS4 SHELLOPTS OLDPWD PWD
    GCONV_PATH GETCONF_DIR GLIBC_TUNABLES HOSTALIASES LOCALDOMAIN LOCPATH MALLOC_TRACE NIS_PATH NLSPATH RESOLV_HOST_CONF
    GREP_OPTIONS TAR_OPTIONS RIPGREP_CONFIG_PATH BAT_CONFIG_PATH ACK_OPTIONS MANOPT MANPAGER PAGER XZ_OPT XZ_DEFAULTS
    GZIP BZIP2 ZSTD_CLEVEL AWKPATH AWKLIBPATH
    PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB NODE_OPTIONS PYTHONSTARTUP PYTHONINSPECT PYTHONBREAKPOINT
    JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS
""".split())  # fmt: skip
_USUAL = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Where tools install the programs of a project."""
_IDENTITY = re.compile(r"GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL)")


class ProgramFile(NamedTuple):
    """The file of a program, or why there is none to run."""

    path: str = ""
    """Its real path, without symlinks."""
    why: str = ""
    name: str = ""
    """The path where it was found. Some programs do different things under different names."""


def find_program(name: str) -> ProgramFile:
    """Find a program that may run without approval: one that only root can change."""
    if not name or "\0" in name:
        return ProgramFile(why="command not found")
    if "/" in name and os.path.dirname(name) not in DIRECTORIES:
        return ProgramFile(why=f"only programs in {', '.join(DIRECTORIES)} are run without approval")
    doubt = ""
    for path in [name] if "/" in name else [f"{directory}/{name}" for directory in DIRECTORIES]:
        if os.path.isfile(path):
            real = os.path.realpath(path)
            why = "is not executable" if not os.access(real, os.X_OK) else others_change(real)
            if not why:
                return ProgramFile(real, name=path)
            doubt = doubt or f"{path} {why}, so it is not run without approval"
    return ProgramFile(why=doubt or "command not found")


def find_trusted(name: str, root: str, directory: str, programs: Sequence[str] = ()) -> ProgramFile:
    """Find a program that a rule of the user allows, in the user's own PATH.

    Directories below `root` are left out unless they are in `programs`, because an agent may write there. A name with a
    slash is resolved against `directory`, where the command runs.
    """
    directories = [one for one in os.environ.get("PATH", FIXED_PATH).split(":") if one.startswith("/")]
    below = [one for one in directories if f"{os.path.realpath(one)}/".startswith(f"{root.rstrip('/')}/")]
    searched = [*programs, *(one for one in directories if one not in below)]
    path = os.path.join(directory, name) if "/" in name else shutil.which(name, path=":".join(searched)) or ""
    if not path or not os.path.isfile(path):
        return ProgramFile(why=f"command not found{_left_out(name, root, below)}")
    return ProgramFile(os.path.realpath(path), name=path)


def _left_out(name: str, root: str, below: Sequence[str]) -> str:
    """A hint for a program that was not found because its directory is below the root: where it is, how to trust it."""
    if "/" in name:
        return ""
    for directory in (*below, *(os.path.join(root, usual) for usual in _USUAL)):
        path = os.path.join(directory, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            inside = os.path.relpath(os.path.realpath(directory), root)
            return (
                f". {inside}/{name} is there, but directories below the root are left out of PATH, as an agent can "
                f"write in them. To trust its programs, write in the config of this shell: programs: [{inside}]"
            )
    return ""


def others_change(path: str) -> str:
    """Why somebody other than root can change a file, given by its real path; empty if nobody can."""
    part = path
    while True:
        try:
            found = os.lstat(part)
        except OSError as error:
            return f"cannot be accessed ({error.strerror})"
        if stat.S_ISLNK(found.st_mode) or (part == path and not stat.S_ISREG(found.st_mode)):
            return "is not a plain file"
        if found.st_uid != 0:
            return "does not belong to root" if part == path else f"is in {part}, which does not belong to root"
        if found.st_mode & _OTHERS_WRITE:
            return "can be changed by others" if part == path else f"is in {part}, which others can change"
        if part == "/":
            return ""
        part = os.path.dirname(part)


def home_directory() -> str:
    """The directory that `~` refers to."""
    home = os.environ.get("HOME", "")
    if home.startswith("/"):
        return home
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def bare_environment(extra: Mapping[str, str], *, directory: str) -> dict[str, str]:
    """The environment of a program that runs without approval in `directory`.

    Of our own environment it has only the user, the home directory and the time zone.
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    zone = os.environ.get("TZ", "")
    return {
        "PATH": FIXED_PATH,
        "HOME": home_directory(),
        "USER": user,
        "LOGNAME": user,
        "PWD": directory,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PAGER": "cat",
        **({"TZ": zone} if _ZONE.fullmatch(zone) else {}),
        **extra,
    }


def approved_environment(
    given: Mapping[str, str], *, keep: Iterable[str] = (), programs: Sequence[str] = ()
) -> dict[str, str]:
    """Our own environment for a command that a person approved, without variables that change what programs do.

    Variables whose names look like secrets are left out too, because the person did not see them; `keep` names
    exceptions. Programs are looked up in the directories `programs` first.
    """
    kept = frozenset(keep)
    found = {name: value for name, value in given.items() if name in kept or not (changes(name) or secret_name(name))}
    directories = [directory for directory in found.get("PATH", "").split(":") if directory.startswith("/")]
    return {
        **found,
        "PATH": ":".join((*programs, *(directories or DIRECTORIES))),
        "HOME": home_directory(),
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
    }


def changes(name: str) -> bool:
    """Whether a variable of this name changes what programs load, run or mean."""
    return name in _NAMES or (name.startswith(_PREFIXES) and not _IDENTITY.fullmatch(name))
