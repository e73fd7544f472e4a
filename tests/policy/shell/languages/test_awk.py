"""awk programs: what passes changes nothing when an awk runs it, and what changes something is asked about."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.shell.languages.scratch import Scratch
from tests.profiles import examples
from tests.tables import table

from signoff.policy.shell.languages import LIMIT, check_awk

AWK = next((name for name in ("mawk", "gawk", "original-awk", "awk") if shutil.which(name)), "awk")

HARMLESS = r"""
NR==1
{print}
{print $1, $NF}
$1 > 5 {print}
NR>1 && $3 > 5
{print ($1 > 5)}
{print $1, ($2 > 3) ? 1 : 2}
{if ($1 > 5) print $1; else print "-"}
{x = $1 > 5; print x}
{print; x = 3 > 2}
{print $1/2, $2 / 3 * 100 "%"}
{n /= 2; print n}
{$1 /= 100; $NF/=2; print}
{a[$1] /= 2; a[b[1]]/=3}
END {if (n) s /= n; else s/=1; print s}
BEGIN {for (x = 8; x > 1; x /= 2) print x}
{sub(/[^/]*$/, ""); print}
/[/]/
/a/,/b/{print NR": "$0}
{gsub(/\//, "_"); print}
!seen[$0]++
{a[$1]+=$2} END {for (k in a) print k, a[k]}
END {for (i=NR; i>0; i--) print x[i]}
BEGIN {FS=":"; OFS=","} $3>=1000 {print $1}
length > 80
length($0) > 80 {print FILENAME ":" FNR}
function bigger(a, b) {return a > b ? a : b} {print bigger($1, $2)}
{printf "%s %d\n", $1, $2}
{printf("%s\n", $1)}
{print "a | b > c system(1)"}
# print > "made"
{print} # system("touch made")
{print > "/dev/stderr"}
{print "x" >> "/dev/stdout"; next}
{getline; print}
{while (getline line) n++} END {print n}
BEGIN {PROCINFO["sorted_in"] = "@ind_str_asc"}
{close("x"); fflush()}
NR==FNR {a[$1]; next} ($1 in a)
{print "é"}
""".strip().split("\n")

HARMFUL = [
    ('BEGIN { system ( "touch made" ) }', "runs"),
    ('BEGIN {system("touch made")}', "runs"),
    ('{print | "cat > made"}', "runs"),
    ('BEGIN {"touch made" | getline}', "runs"),
    ('BEGIN {print "x" |& "cmd"}', "runs"),
    ('{print > "made"}', "writes"),
    ('{print >> "made"}', "writes"),
    ("{print $1 > $2}", "writes"),
    ('{print a[x] > "made"}', "writes"),
    ('{print (x) > "made"}', "writes"),
    ('{print (1)(2) > "made"}', "writes"),
    ('{print(1,2)>"made"}', "writes"),
    ('{printf "%s", "x" > "made"}', "writes"),
    ('{printf("x") > "made"}', "writes"),
    ('{print $1,\n $2 > "made"}', "writes"),
    ('{print $1 \\\n > "made"}', "writes"),
    ('{print x = 2 > "made"}', "writes"),
    ('{print a ?\n b : c > "made"}', "writes"),
    ('{print "x" > "/dev/stderr" "made"}', "writes"),
    ('{print > "/dev/stdout/../made"}', "writes"),
    ("{print 1 >= 2}", "writes"),
    ('{if (1) print 1 > "made"; else print 2}', "writes"),
    ('BEGIN {while ((getline l < "secret") > 0) print l}', "discloses"),
    ('BEGIN {getline < "secret"; print}', "discloses"),
    ("BEGIN {for (k in ENVIRON) print ENVIRON[k]}", "discloses"),
    ('BEGIN {print PROCINFO["pid"]}', "discloses"),
    ('BEGIN {ARGV[1] = "secret"} {print}', "discloses"),
    ("BEGIN {ARGC = 2} {print}", "discloses"),
    ('BEGIN {f = "system"; @f("touch made")}', "runs"),
    ('@load "filefuncs"', "runs"),
    ('BEGIN {s = "/inet/tcp/0/example.com/80"}', "sends"),
    ('/[/ && system("touch made") /]/', "runs"),
    ('{x = y / 2 ; system("touch made") / 1}', "runs"),
]

UNKNOWN = [
    "{print",
    "}",
    "{print 'x'}",
    '{print "x}',
    "/a",
    '{chdir("/")}',
    "{x++ / 2}",
    "{if (1) /a/ }",
    "a::b()",
    "{print length / 2}",
    'x = case / system("touch made") / 2',
    "{print (1; 2)}",
    "# x\\\n{print}",
    "{print $1\r}",
    "{print \x00}",
    '{print "a\\\nb"}',
    "/a\\\nb/",
    "(a\n/ b /c)",
    "{print x (1)}",
    "/[[:x/]/",
    "{é = 1}",
    "a & b",
    '{"x" /=#/ 2}',
    'BEGIN {1 x/=/system("touch made") /1}',
    'BEGIN {-x/=/system("touch made") /1}',
    'BEGIN {!x/=/system("touch made") /1}',
    'BEGIN {a+x/=/system("touch made") /1}',
    'BEGIN {print 1 x /=/ system("touch made") /1}',
    'BEGIN {y = - 1/=/system("touch made") /1}',
    'BEGIN {1 a[1]/=/system("touch made") /1}',
    'BEGIN {1 $x/=/system("touch made") /1}',
    'BEGIN {1 &&\n-x/=/system("touch made") /1}',
]

FRAGMENTS = [
    *'{}()[]/;,?:=+-!~<#>"\\ \n\n',
    "{print ",
    "print ",
    "print(",
    "printf ",
    "$1",
    "a",
    "1",
    ' > "made"',
    '>"made"}',
    '| "cat > made"',
    ' | "touch made"',
    '"touch made" | getline',
    "getline",
    'getline x < "secret"',
    "system(",
    'system("touch made")',
    ';system("touch made");',
    '\nsystem("touch made")\n',
    "/a/",
    "/[/]/",
    "/[^/]*/",
    "if (1)",
    "else ",
    "length",
    "BEGIN{",
    "END",
    "x=",
    "++",
    "/=",
    "&&",
    "case ",
    "function f(x)",
    "f(",
    'ENVIRON["K"]',
    '"/dev/stderr"',
    "\\\n",
    "print a",
    "}",
    "}",
    "exit",
    "in ",
]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("awk"), AWK)


@table("script", HARMLESS)
def test_harmless(script: str, scratch: Scratch) -> None:
    assert check_awk(script) is None
    assert scratch.effect([AWK, script, "in.txt"]) == ""


@table(("script", "effect"), HARMFUL)
def test_harmful(script: str, effect: str) -> None:
    trouble = check_awk(script)
    assert trouble is not None
    assert trouble.why.startswith(f"{effect}: ")
    assert trouble.word in script


@pytest.mark.parametrize(
    "script",
    [
        'BEGIN { system ( "touch made" ) }',
        '{print > "made"}',
        '{print | "cat > made"}',
        '{print $1,\n $2 > "made"}',
        '{print $1 > "made"}',
        'BEGIN {"touch made" | getline}',
        'BEGIN {getline < "secret"; print}',
        '{print(1,2)>"made"}',
        'BEGIN {print ENVIRON["K"]}',
        'BEGIN {ARGV[1] = "secret"} {print}',
    ],
)
def test_what_is_asked_about_is_real(script: str, scratch: Scratch) -> None:
    assert check_awk(script) is not None
    assert scratch.effect([AWK, script, "in.txt"])


@table("script", UNKNOWN)
def test_not_understood(script: str) -> None:
    trouble = check_awk(script)
    assert trouble is not None
    assert trouble.why.startswith(("unknown: ", "runs: ", "writes: "))


def test_too_long() -> None:
    assert check_awk("{a}\n" * (LIMIT // 4)) is None
    assert check_awk("{a}\n" * (LIMIT // 4) + "1") is not None


@examples(3_000, daily=40)
@given(pieces=st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=9))
def test_what_passes_changes_nothing(pieces: list[str], scratch: Scratch) -> None:
    script = "".join(pieces)
    if check_awk(script) is None:
        assert scratch.effect([AWK, script, "in.txt"]) == ""


@examples(2_000, daily=50)
@given(st.text())
def test_never_raises(script: str) -> None:
    check_awk(script)
