"""Lines with variables, substitutions, conditions and loops, most of them harmless, with something hostile in some."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random

PLAIN = re.split("  ", """src  a.txt  src/b.txt  .  names  x  1  'a b'  "two words"  --""")
HOSTILE = re.split(
    "  |\n",
    r""".env  ../home/.netrc  ~/.netrc  src/../.env  *  .*  src/*  ./*  [a.]*  -n  -f  'a[$(touch PWNED)]'
'path[$(touch PWNED)]'  "'; touch PWNED; '"  '$(touch PWNED)'  {a,.env}  =ls  \*  'PATH=.'  code  2  ''  '-e .env'
x=.env  ~  ~root  /proc/self/environ  $'\x2eenv'  '.e'nv  .e\nv  ".env"  @names""",
)
EXPANSIONS = re.split(
    "  |\n",
    r"""$x  "$x"  ${x}  "${x}"  $y  "$y"  "$f"  $f  "$x/.env"  "./$x"  "$x$y"  ${x:-.env}  "${x:-a.txt}"  ${x#a}
"${x%.txt}"  ${#x}  $HOME  "$HOME/.netrc"  $API_TOKEN  "$password"  $DATABASE_URL  $PATH  $1  $@  $?  $$  $#  $!  $-
$_  $x[1]  "$x:h"  ${x:=.env}  ${x:0:4}  ${!x}  ${x@P}  ${(e)x}  $history  $((x))  $[x]  $(cat names)
"$(cat names)"  $(echo .env)  "$(echo .env)"  $(<.env)  `cat .env`  "$(cat .env)"  $(echo a.txt)  $(touch PWNED)
"$(date)"  ${x/a/b}  $(cat code)  "$(cat code)"  $(cd /; pwd)  x$x  -$x  "-$x"  $x.txt  ~/$x  $x*  "$x"*  s$x[a]
"$#x[y]"  "$#argv[y]"  "$xé/.env"  =./run  "$x"  "$y"  ${y}""",
)
NAMES = re.split(
    "  |\n",
    r"""x  x  x  y  y  f  X  Y  PATH  IFS  path  SECONDS  LC_ALL  CI  TZ  HOME  CDPATH  ENV  BASH_ENV  histchars  status
OPTIND  RANDOM  NULLCMD  PS4  argv  UID  _  LINENO  TMOUT  COLUMNS  PWD""",
)
PROGRAMS = re.split(
    "  |\n",
    r"""cat  cat  head -1  ls  echo  echo  printf '%s\n'  printf %d  wc -l  grep -h x  grep -h A  sort  test -n  test -f
tail -n +1  cut -c1-9  tac  cat --  grep -e  grep -f  cat <  read -r  export  cd  true  exit  [ 1 -eq  test -v
sed -n p  sed  awk 1  find  find . -name  xargs cat  xargs  type  command -v  eval  touch  rm -f  tee  ./run  sh
[[ -n  [[ {} =  ls -d  basename  xargs ls  xargs -n1 echo  xargs -I{} ls  find . -print0 | xargs -0 wc
find src -print0 | xargs -0 ls  stat -c %n  readlink  source  unset  set  alias  env  sort -o  git log
od -c  diff a.txt  stat  basename  printf  while  time  local  declare""",
)
BEFORE = (
    "",
    "",
    "",
    "",
    "",
    "",
    "timeout 5 ",
    "time ",
    "time -p ",
    "nice ",
    "env ",
    "LC_ALL=C ",
    "CI=1 ",
    "x=1 ",
    "PATH=. ",
    "env x=1 ",
    "env PATH=. ",
    "env -i ",
    "timeout 5 nice ",
    "command ",
    "! ",
    "nice -n 5 ",
    "stdbuf -oL ",
    "env LC_ALL=C ",
    "TZ=UTC ",
    "exec ",
    "builtin ",
)
AFTER = (
    "",
    "",
    "",
    "",
    "",
    "",
    " 2>/dev/null",
    " > /dev/null",
    " < a.txt",
    " < .env",
    " <<< x",
    ' <<< "$x"',
    " > PWNED",
    " 2>&1",
    ' <<< "$(cat names)"',
    " # note",
    " &",
    " <<'E'\nbody $x\nE",
    " <<E\nbody\nE",
    " <<E\n$(touch PWNED)\nE",
    " <<-E\nE",
    " <<E | cat\nsh\nE",
    " >&2",
    " &>/dev/null",
)
HEADS = ("while read -r f", "while read -r x", "while read -r f y", 'until [ -n "$x" ]', 'while [ -z "$y" ]')
CONDITIONS = re.split(
    "  ",
    "[ -f {} ]  [ {} = {} ]  [ -n {} ]  [ {} -eq 1 ]  test {} != {}  [ ! {} ]  [ {} ]  [ {} {} ]  [ {} -a {} ]  "
    "[[ -f {} ]]  [[ {} == {} ]]  [[ -n {} ]]  [[ {} -eq 1 ]]  [[ ! {} ]]  [[ {} =~ {} ]]  [[ {} {} {} ]]"
    "  [[ -{} {} ]]",
)
JOINS = ("; ", "; ", "\n", " && ", " || ", " | ", " |& ", ";", "\n\n", " & ")


class Lines:
    """Makes lines, by chance."""

    heads: Sequence[str] = HEADS
    """How its loops with a condition begin."""
    names: Sequence[str] = NAMES
    """What it assigns to."""
    more = 0.45
    """How often another command follows."""

    def __init__(self, random: Random) -> None:
        self.pick: Callable[[Sequence[str]], str] = random.choice
        self.chance = random.random

    def line(self) -> str:
        line = self.list(2)
        return line if self.chance() < 0.97 else self.mangled(line)

    def mangled(self, line: str) -> str:
        at = int(self.chance() * len(line))
        return (
            line[:at]
            + self.pick((";", "\n", ")", "(", "}", "{", "'", '"', "$", "`", "\\", " ", "#", "done", "!"))
            + line[at:]
        )

    def list(self, depth: int) -> str:
        made = [self.command(depth)]
        while self.chance() < self.more:
            made += [self.pick(JOINS), self.command(depth)]
        return "".join(made)

    def command(self, depth: int) -> str:
        what = self.chance()
        if depth == 0 or what < 0.45:
            return self.simple()
        if what < 0.63:
            return f"{self.pick(self.names)}={self.word()}" + (
                f" {self.pick(self.names)}={self.word()}" if self.chance() < 0.3 else ""
            )
        inner = self.list(depth - 1)
        sep = self.pick(("; ", "\n", "; "))
        if what < 0.68:
            return f"({inner}){self.after()}"
        if what < 0.73:
            return f"{{ {inner}{sep}}}{self.after()}"
        if what < 0.83:
            words = " ".join(self.word() for _ in range(1 + int(self.chance() * 3)))
            name = self.pick(("f", "f", "x", "f", "PATH", "path", "i"))
            return f"for {name} in {words}{sep}do {inner}{sep}done{self.after()}"
        if what < 0.92:
            otherwise = f"else {self.simple()}{sep}" if self.chance() < 0.4 else ""
            return f"if {self.condition()}{sep}then {inner}{sep}{otherwise}fi{self.after()}"
        last = self.pick(("", "", "exit; ", "y=1; "))
        source = self.pick((" < names", " < names", " < code", " < .env", ""))
        return f"{self.pick(self.heads)}{sep}do {inner}{sep}{last}done{source}"

    def condition(self) -> str:
        if self.chance() < 0.4:
            return self.simple()
        shape = self.pick(CONDITIONS)
        while "{}" in shape:
            shape = shape.replace("{}", self.word(), 1)
        return shape

    def simple(self) -> str:
        words = " ".join(self.word() for _ in range(int(self.chance() * 3)))
        return f"{self.pick(BEFORE)}{self.pick(PROGRAMS)} {words}".rstrip() + self.after()

    def after(self) -> str:
        return self.pick(AFTER) if self.chance() < 0.3 else ""

    def word(self) -> str:
        what = self.chance()
        return self.pick(PLAIN if what < 0.45 else EXPANSIONS if what < 0.82 else HOSTILE)


def lines(seed: int) -> Iterator[str]:
    """Lines without end, the same for one seed."""
    made = Lines(Random(seed))
    while True:
        yield made.line()
