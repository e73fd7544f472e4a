"""Commands that run what is typed at their terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.typed_commands import typed_into

TYPED = """
less x
cat x | less
ls; less x
ls && more x
/usr/bin/less x
less < x
zless x
man ls
journalctl -u x
systemctl status x
dpkg -l
bat x
apt list
git help log
vim x
vi
nano x
ed x
top
htop
sqlite3 a.db
psql
python
python3.12
python -i x.py
python -m pdb x.py
python -W ignore
python -
sh
bash -i
bash -l
sh -s
zsh
node
node -r x
pytest --pdb
pytest --pd
python -m pytest --trace
git commit
git commit -em x
journalctl -u --no-pager
dpkg -l -- --no-pager
python -X -c
git commit --author -m
command less x
'less' x
le"ss" x
less x 2>&1
! less x
git add -p
git -C sub commit
git -c a=b rebase -i x
git rebase -i HEAD~2
git merge x
git tag -a v1
git config -e
git branch --edit-description
timeout 5 less x
bash -c 'less x'
echo $(less x)
find . -exec less {} +
ls | xargs less
(less x)
env less x
docker run -it x
ssh host
gdb
fzf
cargo help build
npm help
ipython
(ls; vim)
"""
PLAIN = """
less x | head
cat x | less | cat
man ls | cat
journalctl --no-pager
journalctl -b --no-pager -u x
git commit -a -m x
git commit --no-verify -m x
git commit --author=x -m y
systemctl status x --no-pager
git log
git log -p
git diff
git show
git status
git commit -m x
git commit -am x
git commit --amend --no-edit
git push
git tag
git tag -l
git tag -a v1 -m x
git add .
git add -A
git branch -a
git stash list
git stash show -p
git config -l
git log -i --grep x
git diff commit
git -C sub diff merge
git show help
python x.py
python -u x.py
python -m pytest -q
python -c 'print(1)'
bash x.sh
bash -e x.sh
bash -c ls
node x.js
npm test
npm run build
cargo test
cargo build
make test
pytest -x
ruff check .
docker ps
rg foo
cat x
head x
tail x
ls
find . -name x
grep -r x .
jq . x
sed -n 1p x
awk 1 x
go test ./...
tox
wc -l x
tree
ps aux
df
du -sh .
which less
type vim
"""


@pytest.mark.parametrize("line", TYPED.strip().splitlines())
def test_what_takes_commands_is_found(line: str) -> None:
    assert typed_into(read_shell(line))


@pytest.mark.parametrize("line", PLAIN.strip().splitlines())
def test_everyday_commands_take_none(line: str) -> None:
    assert typed_into(read_shell(line)) == ""


@given(
    st.sampled_from(["less x", "vim", "sh", "python", "top"]), st.sampled_from(["ls", "git status", "cat x"]), st.data()
)
def test_no_company_hides_it(line: str, other: str, data: st.DataObject) -> None:
    around = data.draw(
        st.sampled_from(["{0}; {1}", "{1} && {0}", "{1} || {0}", "({0})", "{{ {0}; }}", "! {0}", "{1} | {0}"])
    )
    assert typed_into(read_shell(around.format(line, other))), around


@pytest.mark.parametrize("program", ["less", "man"])
def test_the_pagers_here_really_run_what_is_typed(program: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    (tmp_path / "x.1").write_text(".TH X 1\n.SH NAME\n" + "".join(f".br\nline {n}\n" for n in range(500)))
    given = "./x.1" if program == "man" else "x.1"
    assert typed_into(read_shell(f"{program} {given}"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "vt100", "PAGER": "less"}
    with subprocess.Popen([program, given], cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
                          start_new_session=True) as process:  # fmt: skip
        os.close(theirs)
        until = time.monotonic() + 30
        while not (tmp_path / "pwned").exists() and time.monotonic() < until:
            if select.select([ours], [], [], 0.2)[0]:
                os.read(ours, 65536)
            else:
                os.write(ours, b"!touch pwned\n\n")
        process.kill()
    os.close(ours)
    assert (tmp_path / "pwned").exists()
