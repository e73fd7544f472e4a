"""Sensitive files: an approval for *always inside this directory* does not cover them.

Stricter than `runs_later` and `secret_place`, which decide whether people are asked about single files. There, a wrong
guess costs a needless question each time; here it costs one question. So whole kinds of files are included: settings,
scripts, backups. A list of known names, not a security boundary. Source files are not included, although they get run:
permission for a coding agent to write inside `src` means them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from signoff.policy.places import HOOKS, folded, runs_later
from signoff.policy.secret import secret_place


@lru_cache(1024)
def sensitive_place(path: str, root: str = "") -> str:
    """Return why permission for a directory does not cover this path, in words that follow it; "" if it does.

    Directory names count from `root` down only: a project may itself be in a directory called `bin`.
    """
    if why := secret_place(path):
        return why
    if runs_later(path):
        return _RUN
    inside = path.removeprefix(f"{root}/") if root else path
    names = [plain for step in inside.split("/") if step not in ("", ".", "..") and (plain := folded(step))]
    if len(names) > 1 and not _DIRECTORIES.isdisjoint(names):
        return _RUN
    return _by_name(names[-1], names[:-1]) if names else ""


def _by_name(name: str, directories: list[str]) -> str:
    plain = _COPY.sub("", name)
    stem, _, suffix = plain.rpartition(".")
    if suffix in _SUFFIXES and stem:
        return _SUFFIXES[suffix]
    if suffix in _PROSE and not _PROMPTS.isdisjoint(directories):
        return "may tell an agent what to do"
    for expression, why in _NAMES:
        if expression.fullmatch(plain):
            return why
    is_secret = suffix in _DATA and not _WORDS.isdisjoint(_BETWEEN.split(stem))
    return "may hold secrets, judging by its name" if is_secret else ""


_RUN = "is run by tools, or tells them what to run"
_SETTINGS = "may hold settings, which can hold secrets or name programs to run"
_BACKUP = "may be a backup or a database"
_SEALED = "looks like an encrypted or signed file"

_DIRECTORIES = frozenset(
    "bin sbin libexec cgi-bin script scripts hooks workers ci cron docker-entrypoint-initdb.d initdb.d".split()
)
"""Directories that hold little but files that are run. What is moved to such a directory is run from then on. A
single word without a slash is not treated as a directory."""
_PROMPTS = frozenset("agents commands instructions prompts rules skills".split())
_PROSE = frozenset("md mdc txt".split())

_SUFFIXES = {
    suffix: why
    for suffixes, why in (
        ("sh bash zsh fish ksh csh tcsh dash command ps1 psm1 psd1 bat cmd vbs vbe wsf wsh hta reg scpt", _RUN),
        ("applescript awk tcl expect exe scr msi dll dylib jar war apk deb rpm appimage wasm lnk", _RUN),
        ("rake thor tf hcl nomad bicep rego vim docm xlsm pptm whl egg gem nupkg vsix xpi crx", _RUN),
        ("yaml yml toml ini cfg cnf conf config properties xml env rc tfbackend jsonnet libsonnet dhall", _SETTINGS),
        ("sql dump sqlite sqlite3 db db3 mdb rdb bson pgdump bak ldif har pcap mbox pst", _BACKUP),
        ("gpg pgp asc age enc sops secret secrets creds 1pux 1pif opvault mobileprovision", _SEALED),
    )
    for suffix in suffixes.split()
}

_NAMES = tuple(
    (re.compile(expression), why)
    for expression, why in (
        (r"(?:manage|conf|env|wsgi|asgi|gunicorn|celery|celeryconfig|noxfile|tasks)\.py", _RUN),
        (r"(?:.*[._-])?(?:settings|config|configuration|conf|rc)(?:[._-].*)?\.[a-z0-9]+", _SETTINGS),
        (r"[a-z0-9]+rc(?:\.[cm]?[jt]s|\.json[c5]?)", _SETTINGS),
        (r"(?:spec|rails|test|support)_helper\.rb|(?:jest|vitest|test|global)[._-]?setup\.[cm]?[jt]sx?", _RUN),
        (r"setup[._-]?(?:tests?|jest|vitest)\.[cm]?[jt]sx?|.*\.(?:workspace|conf)(?:\..*)?\.[cm]?[jt]s", _RUN),
        (r"\.?pnpmfile\.[cm]?js|config\.ru|lib.+\.so(?:\.\d+)*|(?!pro)[a-z]{2,}file", _RUN),
        (r"(?:docker-?)?entry-?point(?:[._-].*)?", _RUN),
        (
            r"(?:agents?|claude|gemini|qwen|crush|warp|cursor|copilot|skill|memory)(?:[._-].*)?\.mdc?",
            "may tell an agent what to do",
        ),
        (r".*\.(?:prompt|instructions|agent|chatmode)\.md", "may tell an agent what to do"),
        ("|".join(map(re.escape, sorted(HOOKS - {"update"}))), _RUN),
        (r"env[._-](?:prod|stag|dev|local|test|secret).*|wg\d+(?:\..*)?", _SETTINGS),
        (r"(?:.*[._-])?(?:bak|backup|dump)(?:[._-].*)?\.[a-z0-9]+", _BACKUP),
        (r".*(?:bitwarden|lastpass|1password|keepass|dashlane).*|utc--.*", _SEALED),
    )
)
"""Whole names, without the suffix of a copy or backup."""

_DATA = frozenset("txt json jsonc json5 jsonl csv tsv xlsx ods".split())
_WORDS = frozenset(
    """
    secret secrets credential credentials creds password passwords passphrase passwd token tokens apikey apikeys key
    keys rootkey rootkeys accesskey accesskeys keyring keystore wallet wallets mnemonic vault auth oauth cookie
    cookies logins recovery
    """.split()
)
_BETWEEN = re.compile(r"[-_. ]")
_COPY = re.compile(r"(?:\.(?:gz|z|bz2|xz|zst|zip|old|orig|save|swp|tmp|copy|dist|example|sample|template)|~)+$")
