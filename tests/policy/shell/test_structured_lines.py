"""Variables, substitutions, conditions and loops: what is known of such a line, and what asks."""

from __future__ import annotations

import pytest
from tests.tables import table

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.policy.shell.command_facts import read_shell

READS = r"""
X=1
x=src; ls $x
x=src; cat "$x/a.py" ${x}/b.py
x=src y=a; cat "$x/$y"
VERSION=1.2; git log "v$VERSION"
export CI=1; ls
export FOO_BAR=1
issue_title="Nightly build failed"
d=$(date); echo "$d"
echo "$(git rev-parse HEAD)"
echo $HOME "$PATH" $? "${x:-none}" ${x##*.} $branch
printf '%s\n' "$x" "$(date)"
for f in a b; do cat $f; done
for f in src/*.py; do head -3 "$f"; done
for f in $(git ls-files); do echo "$f"; done
for d in a b; do (cd "$d" && ls); done
while read -r l; do echo "$l"; done < a.txt
find . -name '*.py' | while read -r f; do echo "$f"; done
if [ -f a ]; then cat a; elif test -d b; then ls b; else echo no; fi
if [ -n "$x" ]; then echo "$x"; fi
if [ "$x" = y ] || [ ! -f "$x" ]; then exit 1; fi
if grep -q x a > /dev/null ; then exit 1; fi
! grep -q x a && echo no
(cd src && ls); cat a
{ ls; pwd; } | head -3
cat <<'END'
$(rm x) `id`
END
cat <<END | sort
b
END
grep x <<< "hello"
timeout 5 ls -la
timeout -k 5 10s git status
nice -n 5 env LC_ALL=C sort a
time rg x
LC_ALL=C sort a | head
NO_COLOR=1 TZ=UTC date
env CI=true ls
until [ -f a ]; do ls; done
"""
ASKS = r"""
x=.env; cat $x
x=a; x=.env; cat $x
for f in a .env; do cat $f; done
for f in .*; do cat "$f"; done
cat $(ls)
cat "$x"
ls $(echo -R)
cat "$(echo .env)"
x=$(cat .env); echo $x
while read -r f; do cat "$f"; done < names
x=a; while read -r l; do cat "$x"; x=.env; done
x=a; if true; then x=.env; fi; cat "$x"
x=a; true && x=.env; cat "$x"
x=a; (x=.env; cat "$x")
x=1 | cat $x
{ x=a; } | cat "$x"
$x a
x=rm; $x a
"$x"
echo $API_TOKEN
echo "$DATABASE_URL"
echo $password
echo ${!x}
echo ${x@P}
echo ${x:=.env}
echo ${x:0:$y}
echo $((x))
echo $x[1]
echo "${x:-$(rm a)}"
echo `ls`
echo $(<.env)
PATH=.; ls
path=.; ls
IFS=/; ls
export GIT_SSH_COMMAND=x
export HTTPS_PROXY=http://x
export PYTHONPATH=.
SECONDS='a[$(id)]'
status=1; ls
CELERY_BIN=./x; ls
FOO=1 ls
x=1 ls
TZ=:/etc/x date
PAGER=./x git log
PYTHONWARNINGS=error::evil.Mod python --version
env PATH=. ls
env -i ls
env FOO=1 ls
env
timeout 5
timeout 5 rm a
timeout 5 cd x
./timeout 5 ls
time -o out ls
nice -n '5;' ls
export X=$(cat names); echo a
export $x=1
export -n X
read -r PATH
read -p x y
for PATH in a; do ls; done
for f in a; do cd b; done
for f in a; do rm $f; done
for ((i=0;i<3;i++)); do ls; done
for f; do ls; done
if rm a; then ls; fi
if true; then rm a; fi
[ "$x" -eq 1 ]
[ $x = y ]
[ "$x" "$y" ]
[ "$x" -a "$y" ]
[[ -n $x ]]
printf %d "$x"
printf "$x"
cd "$x" && cat a
cd $(git rev-parse --show-toplevel) && cat a
f() { ls; }; f
case a in a) ls;; esac
ls &
cat <<END
$(rm x)
END
cat <<-'END'
x
END
sh <<'END'
rm x
END
cat <<'END'
x
echo $(rm a)
(rm a)
{ rm a; }
ls; }
( ls
echo {a,b}
x=(a b)
x+=1
x[0]=1
declare x=1
eval "$x"
alias ls=rm
! rm a
ls | while read -r f; do rm "$f"; done
"""


def lines(text: str) -> list[str]:
    """The lines; a here-document keeps together with what begins it."""
    found: list[str] = []
    for line in text.strip().splitlines():
        here = found and "<<" in found[-1] and "<<<" not in found[-1] and not found[-1].endswith("\nEND")
        if here and not line.startswith("echo $(rm a)"):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


def effect(line: str, *rules: dict[str, object], roams: bool = True) -> Effect:
    policy = Policy.from_rules(rules or [{"allow": {"command": "read-only"}}])
    return policy.judge(Call(tool="shell", args={"command": line}, roams=roams)).effect


@table("line", lines(READS))
def test_what_is_known_to_read_is_allowed(line: str) -> None:
    assert effect(line) is Effect.ALLOW, read_shell(line).why


@table("line", lines(ASKS))
def test_what_is_not_known_asks(line: str) -> None:
    assert effect(line) is Effect.ASK


def test_signoff_itself_runs_words_only() -> None:
    assert effect("x=src; ls $x", roams=False) is Effect.ALLOW
    assert effect("timeout 5 ls", roams=False) is Effect.ALLOW
    for line in ("echo $HOME", "for f in a; do cat $f; done", "(ls)", "echo $(date)", "cat <<'E'\nx\nE"):
        assert effect(line, roams=False) is Effect.ASK
        assert effect(line) is Effect.ALLOW


@pytest.mark.parametrize(
    "line",
    [
        "timeout 5 git log",
        "x=git; $x log",
        "if true; then git log; fi",
        "echo $(git log)",
        "for f in log; do git $f; done",
    ],
)
def test_rules_that_deny_find_the_commands_in_it(line: str) -> None:
    assert effect(line, {"deny": {"command": "git log"}}, {"allow": {"command": "read-only"}}) is Effect.DENY


def test_patterns_cover_what_is_wrapped_and_what_is_in_loops() -> None:
    allow = {"allow": {"command": ["read-only", "pytest *"]}}
    for line in (
        "timeout 60 pytest -q",
        "CI=1 pytest -q",
        "for f in a b; do pytest tests/$f; done",
        "if pytest -q; then ls; fi",
    ):
        assert effect(line, allow) is Effect.ALLOW, line
    for line in ("PYTEST_ADDOPTS=x pytest", "pytest $(cat names)", 'pytest "$x"', "timeout 60 rm x", "pytest -q > x"):
        assert effect(line, allow) is Effect.ASK, line
    assert effect("timeout 9 frob x", {"allow": {"command": "timeout 9 frob *"}}) is Effect.ALLOW


def test_a_loop_over_too_much_asks() -> None:
    words = " ".join(map(str, range(200)))
    assert effect(f"for i in {words}; do ls $i; done") is Effect.ASK
    assert effect("(" * 40 + "ls" + ")" * 40) is Effect.ASK
    assert effect("echo " + "$(echo " * 500 + ")" * 500) is Effect.ASK
