"""Variables, substitutions, conditions and loops: what is known of such a line, and what asks."""

from __future__ import annotations

import pytest
from tests.steps import grows_linearly, steps
from tests.tables import table

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.line import CommandLine
from signoff.policy.shell.literal_words import Refused
from signoff.policy.shell.structured_lines import read_structured

READS = r"""
X=1
x=src; ls $x
x=src; cat "$x/a.py" ${x}/b.py
x=src y=a; cat "$x/$y"
VERSION=1.2; git log "v$VERSION"
export CI=1; ls
export FOO_BAR=1
issue_title="Nightly build failed"
x=src; cat "${x}é/a.py" "$x/é.py"
x=a y=b; cat "$x" "$y"
x=a; x=b y=c; cat "$x" "$y"
d=$(date); echo "$d"
ls; echo "exit: $?" "$?: done" $?
echo "$(git rev-parse HEAD)"
echo "$GITHUB_TAG on $DATE: $DISK_ID"
MYPYPATH=src ls
NODE_V8_COVERAGE= ls
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
[[ -n $x ]]
[[ -f a ]] && cat a
[[ ! -d "$x" ]] || ls
if [[ "$x" == "3.9" ]]; then y=0; fi
[[ $x == a* ]]
[[ $x != "b c" ]]
[[ ! "$VERSION" =~ ^[0-9]+\.[0-9]+$ ]] && echo no
[[ 3 -lt 4 ]]
[[ a -nt b ]]
[[ $x ]]
while [[ -z $x ]]; do read -r x; done < a
ls $(echo -R)
ls -l $x "$y" a
basename "$x" .py
dirname $x
stat -c %s "$x"
readlink -f "$x"
lsblk --paths $x
cat a | xargs
ls | xargs echo
ls | xargs -n1 basename
ls | xargs -r -n 1 ls -l
ls | xargs -I{} echo a/{}
ls | xargs -I % ls -d %
find . -print0 | xargs -0 wc -l
find src -type f -name '*.py' -print0 2>/dev/null | xargs -0 -n 10 grep -n x
find . -print0 | xargs -r0 head -3
find . ! -name .env -print0 | xargs -0 wc -l
find . -name .env -print0 | xargs -0 ls -l
find . -name .env -exec stat {} +
x=a; ls "$x"/[ab]* [ab]*
echo "$x:h" "$HOME:$PATH" "$x:bad" "${x}:s" $?:
"""
ASKS = r"""
x=.env; { x=a; }; cat "$x"
x=.env; if true; then x=a; fi; cat "$x"
x=.env; for f in a; do x=a; done; cat "$x"
x=.env; cat $x
x=a; x=.env; cat $x
for f in a .env; do cat $f; done
for f in .*; do cat "$f"; done
cat $(ls)
cat "$x"
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
export FLASK_APP=x
SECONDS='a[$(id)]'
status=1; ls
CELERY_BIN=./x; ls
FOO=1 ls
x=1 ls
TZ=:/etc/x date
PAGER=./x git log
PYTHONWARNINGS=error::evil.Mod python --version
env PATH=. ls
MYPYPATH=../x ls
MYPYPATH=/x ls
NODE_V8_COVERAGE=x ls
echo "$API_KEY_ID"
echo $SECRET_TAG
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
echo "$#x[y]"
cat "$?:h"
echo "$$:t"
x=a; cat "$xé/proc/self/environ"
x=a; cat "$xª/a.py"
for x in a; do cat "$xа/a.py"; done
x=b; x=.env y=$x; cat "$y"
x=b; x=/proc/self/environ y="a$x"; cat "${y#a}"
x=-n; x=--output=f y=$x; sort $y plan.txt
x=src; x=.. y=$x; cd "$y" && cat a
x=b; export x=.env y=$x; cat "$y"
x==./src/a.py; cat "$x"
x=a:=./b; cat "$x"
y='argv[$(id)]'; echo "$#argv[y]"
printf '%s' "$#-[y]"
ZLE_RPROMPT_INDENT='argv[$(id)]'
DIRSTACKSIZE=1; echo a
export FOO='argv[$(id)]'
FOO='a[1]'; echo "$FOO"
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
[[ -v x[$y] ]]
[[ -v x ]]
[[ -t 'a[$(id)]' ]]
[[ $x -eq 1 ]]
[[ 'a[$(id)]' -eq 1 ]]
[[ a < b ]]
[[ a > b ]]
[[ -f a && -f b ]]
[[ ( -f a ) ]]
[[ -f a || rm ]]
[[ $x == (a|b) ]]
[[ -f a
[[ -f a ]] b ]]
[[ "]]" ]
[[ a "]]"; rm b ]]
x=1 [[ a ]]
LC_ALL=C [[ -f a ]]
[[ -f a ]] < .env
[[ a ]] > b
[[ $x $y ]]
[[ $x "$y" z ]]
[[ -f a -a -f b ]]
[[ -o x ]]
[[ -prefix 1 x ]]
[[ -n $(rm a) ]]
[[ -n $API_TOKEN ]]; echo "$API_TOKEN"
timeout 5 [[ a ]]
[[ ]]
[[
cat $(ls) | xargs cat
ls | xargs rm
ls | xargs cat
ls | xargs wc -l
xargs -a names echo
xargs -I{} sh -c {}
ls | xargs -I{} {} a
ls | xargs -I {} cat {}
ls | xargs -I A As
ls | xargs env
ls | xargs cd
ls | xargs find
find . -print0 | xargs -0 rm
find src -print0 | xargs -0 -d '\n' cat
find src -print0 | xargs -r0 --delimiter '\n' grep -h S
find / -print0 | xargs -0 cat
find .. -print0 | xargs -0 sort
find ~ -print0 | xargs -0 cat
find .ssh -print0 | xargs -0 cat
find . -print | xargs cat
find . | xargs cat
find . -print0 | xargs cat
find . -printf %p -print0 | xargs -0 cat
find . -exec echo /etc/shadow ';' -print0 | xargs -0 cat
find "$x" -print0 | xargs -0 cat
find . -print0 | xargs -0 cat < names
find . -print0 | xargs -0 cat <<< /proc/self/environ
find . -print0 2>&1 | xargs -0 cat
find . -print0 |& xargs -0 cat
find . -print0 | sort -z | xargs -0 cat
cat names | xargs -0 cat
cd ~ && find . -print0 | xargs -0 cat
find . -print0 | xargs -0 grep -rf .env
find . -name .env -print0 | xargs -0 cat
find . -iname ID_RSA -print0 | xargs -0 head -3
find . -name '.en*' -exec cat {} +
find . -path '*/.ssh/*' -exec grep -h x {} ';'
find . -name server.key -exec strings {} +
cat $x
du $x
tree $x
sort $x
wc $(cat a)
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
x=a-z; cat [$x]b
x=a-z; ls src/[a$x]b
for f in a*; do cat ["$f"]b; done
x=a; echo "$x:s/a/b/"
x=a; echo "$x:h:s/a/b/"
echo "$?:gs/0/b/" $?:s/0/b
x=a; echo "$x:&"
x=.env; { x=a; } < missing; cat "$x"
x=.env; { ls; { x=a; }; } 2>/dev/null < missing; cat "$x"
x=-delete; { y=1; x=-print; } < missing; find src $x
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


def test_what_a_line_grows_to_is_limited() -> None:
    doubled = "; ".join(f'x{at}="$x{at - 1}$x{at - 1}"' for at in range(1, 40))
    assert steps(lambda: read_structured(f"x0=aaaaaaaaaa; {doubled}; echo done")) < 20_000
    for line in (f'x={"a" * 7_000}; echo "{"$x" * 3_500}"', "x=1234; " + "echo $x;" * 4):
        assert isinstance(read_structured(line), Refused) is (len(line) > 100)
    loops = (
        "for x in 1 2 3 4 5 6; do {}; done",
        "while true; do {}; done",
        "while true; do while true; do {}; done; done",
    )
    for loop in loops:
        words = 8_000 // (6 if "for" in loop else 2 * loop.count("while"))
        assert isinstance(read_structured(loop.format("cat" + " a" * (words // 2))), CommandLine)
        assert isinstance(read_structured(loop.format("cat" + " a" * (words * 2))), Refused)


def test_the_work_for_loops_grows_with_the_text_alone() -> None:
    def looped(size: int) -> str:
        return f"for x in {' '.join(map(str, range(60)))}; do cat {'a ' * size}; done"

    grows_linearly(looped, read_structured, 200, sizes=(1, 2))


def test_a_loop_over_too_much_asks() -> None:
    words = " ".join(map(str, range(200)))
    assert effect(f"for i in {words}; do ls $i; done") is Effect.ASK
    assert effect("(" * 40 + "ls" + ")" * 40) is Effect.ASK
    assert effect("echo " + "$(echo " * 500 + ")" * 500) is Effect.ASK
