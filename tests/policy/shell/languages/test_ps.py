"""ps: what passes shows the environment of no process, however the real ps reads it."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import NIGHTLY, examples
from tests.tables import table

from signoff.policy.shell.command_facts import read_shell

USER = os.geteuid()
SECRET = "hush-environment"
HARMLESS = """
ps ;; ps aux ;; ps -aux ;; ps auxww ;; ps -ef ;; ps -efww ;; ps -ef ww ;; ps -e ;; ps -A ;; ps x ;; ps axjf ;;
ps -ejH ;; ps -eLf ;; ps -ely ;; ps -elf ;; ps -ef --forest ;; ps -eo pid,etime,cmd --sort -rss ;; ps -e -o pid,args ;;
ps -eww -o pid,args ;; ps -ewwo pid,args ;; ps -eo pid,ppid,cmd,%mem,%cpu --sort=-%mem ;;
ps -eo pid,comm --no-headers ;; ps k size ;; ps -o ppid= -p 1 ;; ps -p 1 -o comm= ;; ps -p1 ;; ps -fp 1 ;;
ps -f -p 1,2 ;; ps p 1 ;; ps --pid 1 -f ;; ps -u postgres ;; ps -fu root ;; ps -U root -u root u ;;
ps -C nginx -o pid,ppid,args ;; ps --ppid 1 -o pid= ;;
ps axo pid,comm ;; ps aux --sort=-%mem ;; ps aux --sort -rss ;; ps -T -p 1 ;; ps -o pid,user:20,args ;; ps -V
"""
HARMFUL = """
ps e ;; ps auxe ;; ps -auxe ;; ps aux e ;; ps axeww ;; ps -E ;; ps -o pid,environ ;; ps o pid,environ ;; ps -eTH ;;
ps --format environ ;; ps -e -T -H ;; ps -e -c -o args --user root --cols 20000 ;; ps --context -ef --deselect ;;
ps -ec -O pid --user root ;; ps -u xe ;; ps -C o euser ;; ps -eM -o args ;; ps -e -P -o args ;; ps -eo args -c ;;
ps -ef --sort none ;; ps -eo args --user nobody-e ;; ps '-o args' -e ;; ps -e* ;; ps ''
"""
LETTERS = st.text("aAcdefFgGhHjklLmMnNoOpqPrsStTuUvVwxXyZCe", min_size=1, max_size=4)
VALUES = """
1 root xe o args pid,args euser etime,args -rss u environ %p e 20000 nobody postgres ue x comm= a:3 --forest --sort
--sort=pid --cols --cols=300 --user --user=root --deselect --no-headers --context --pid --ppid --format --width --tty
""".split()
WORDS = st.lists(LETTERS.map("-{}".format) | LETTERS | st.sampled_from(VALUES), min_size=1, max_size=5)
WITH_E = (
    st.tuples(
        st.text("efFlLjHyw", max_size=3).map("-e{}".format),
        st.lists(
            st.sampled_from((*"-c -f -l -M -P -y -H ww --context --forest".split(), "-o args", "-O pid")), max_size=3
        ),
        st.sampled_from((f"--user {USER}", "x", "--deselect", "-N", "-A")),
        st.just("--cols 20000"),
    )
    .map(lambda parts: [parts[0], *parts[1], *parts[2:]])
    .flatmap(st.permutations)
    .map(lambda parts: " ".join(parts).split())
)


def listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(";;")]


@pytest.fixture(autouse=True, scope="module")
def a_process_with_a_secret() -> object:
    """Its environment is what must not be shown. It ends with the pipe that it reads from."""
    if not shutil.which("ps"):
        pytest.skip("ps is not on this machine")
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={"K": SECRET, "PATH": os.environ["PATH"]})
    yield child
    assert child.stdin is not None
    child.stdin.close()
    child.wait(10)


def shows(words: list[str]) -> bool:
    """Whether ps, started with these words, shows what is in an environment."""
    where = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "K": SECRET}
    ended = subprocess.run(["ps", *words], env=where, capture_output=True, timeout=60, check=False)
    return SECRET.encode() in ended.stdout


@table("command", listed(HARMLESS))
def test_harmless(command: str) -> None:
    assert read_shell(command).read_only


@table("command", listed(HARMLESS) if NIGHTLY else listed(HARMLESS)[::3])
def test_what_is_harmless_shows_no_environment(command: str) -> None:
    assert not shows(command.split()[1:])


@table("command", listed(HARMFUL))
def test_harmful(command: str) -> None:
    assert not read_shell(command).read_only


@pytest.mark.parametrize(
    "words", ["auxeww", f"-e -c -o args --user {USER} --cols 20000", "--context -ef --deselect --cols 20000"]
)
def test_what_is_asked_about_is_real(words: str) -> None:
    if subprocess.run(["ps", "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this ps is not that of procps")
    assert shows(words.split())


@examples(20_000, daily=30)
@given(words=WORDS | WITH_E)
@example(words=["-e", "-c", "-o", "args"])
def test_what_passes_shows_no_environment(words: list[str]) -> None:
    if read_shell(" ".join(["ps", *words])).read_only:
        assert not shows(words)
