"""Programs that run another command: the full parse finds what they run."""

from __future__ import annotations

import pytest
from tests.tables import table

from signoff.policy.shell.literal import UNKNOWN, Arg
from signoff.policy.shell.shell_variables import changes_programs
from signoff.policy.shell.syntax_tree import Command, parse_tree
from signoff.policy.shell.wrappers import hand_on

RM = ("rm", "-rf", "/srv")

# Each runs `rm -rf /srv`, through what is named.
UNDERSTOOD = [
    ("env rm -rf /srv", "env"),
    ("env -i -u HOME A=1 B=2 rm -rf /srv", "env"),
    ("env - rm -rf /srv", "env"),
    ("env --unset=A -C /tmp -- rm -rf /srv", "env"),
    ("nice rm -rf /srv", "nice"),
    ("nice -n 5 rm -rf /srv", "nice"),
    ("nice -10 rm -rf /srv", "nice"),
    ("nice --adjustment=3 rm -rf /srv", "nice"),
    ("ionice -c 3 -n 7 rm -rf /srv", "ionice"),
    ("ionice -c3 rm -rf /srv", "ionice"),
    ("chrt -f 10 rm -rf /srv", "chrt"),
    ("taskset -c 0,1 rm -rf /srv", "taskset"),
    ("timeout 5 rm -rf /srv", "timeout"),
    ("timeout -k 1 -s KILL --foreground 5 rm -rf /srv", "timeout"),
    ("timeout --sig KILL 5 rm -rf /srv", "timeout"),
    ("time rm -rf /srv", "time"),
    ("time -p rm -rf /srv", "time"),
    ("nohup rm -rf /srv", "nohup"),
    ("setsid -w rm -rf /srv", "setsid"),
    ("stdbuf -oL -e 0 rm -rf /srv", "stdbuf"),
    ("sudo rm -rf /srv", "sudo"),
    ("sudo -nu root A=1 rm -rf /srv", "sudo"),
    ("/usr/bin/sudo --user=root -- rm -rf /srv", "sudo"),
    ("doas -n -u root rm -rf /srv", "doas"),
    ("busybox rm -rf /srv", "busybox"),
    ("toybox rm -rf /srv", "toybox"),
    ("exec rm -rf /srv", "exec"),
    ("exec -a ls rm -rf /srv", "exec"),
    ("command -p rm -rf /srv", "command"),
    ("builtin rm -rf /srv", "builtin"),
    ("eval rm -rf /srv", "eval"),
    ("eval 'rm -rf' /srv", "eval"),
    ("watch -n 1 rm -rf /srv", "watch"),
    ("watch 'rm -rf /srv'", "watch"),
    ("watch -x rm -rf /srv", "watch"),
    ("strace -f -e trace=file -o out rm -rf /srv", "strace"),
    ("ltrace -f -o out rm -rf /srv", "ltrace"),
    ("script -qc 'rm -rf /srv' /dev/null", "script -c"),
    ("script --command='rm -rf /srv'", "script --command"),
    ("flock /lock rm -rf /srv", "flock"),
    ("flock -n /lock -c 'rm -rf /srv'", "flock -c"),
    ("unshare -rmn rm -rf /srv", "unshare"),
    ("nsenter -t 1 -m -- rm -rf /srv", "nsenter"),
    ("chroot /jail rm -rf /srv", "chroot"),
    ("chroot --userspec=a:b /jail rm -rf /srv", "chroot"),
    ("systemd-run --user -p A=1 --scope rm -rf /srv", "systemd-run"),
    ("systemd-inhibit --why text rm -rf /srv", "systemd-inhibit"),
    ("su -c 'rm -rf /srv'", "su -c"),
    ("su - root -c 'rm -rf /srv'", "su -c"),
    ("su root --command 'rm -rf /srv'", "su --command"),
    ("sh -c 'rm -rf /srv'", "sh -c"),
    ("bash -lc 'rm -rf /srv'", "bash -c"),
    ("bash -x -e -c 'rm -rf /srv' name", "bash -c"),
    ("bash -c -e 'rm -rf /srv'", "bash -c"),
    ("bash --norc -o pipefail -c 'rm -rf /srv'", "bash -c"),
    ("zsh -xc 'rm -rf /srv'", "zsh -c"),
    ("dash -c 'rm -rf /srv'", "dash -c"),
    ("ash -c 'rm -rf /srv'", "ash -c"),
    ("ksh -c 'rm -rf /srv'", "ksh -c"),
    ("mksh -c -- 'rm -rf /srv'", "mksh -c"),
    ("sh <<< 'rm -rf /srv'", "sh"),
    ("ssh host rm -rf /srv", "ssh"),
    ("ssh -p 22 -o BatchMode=yes user@host 'rm -rf /srv'", "ssh"),
    ("ssh host -l user rm -rf /srv", "ssh"),
    ("ssh -o 'ProxyCommand=rm -rf /srv' host true", "ssh -o ProxyCommand"),
    ("scp -oProxyCommand='rm -rf /srv' a host:b", "scp -o ProxyCommand"),
    ("docker exec -it -e A=1 box rm -rf /srv", "docker exec"),
    ("docker run --rm -v /:/host -it image rm -rf /srv", "docker run"),
    ("docker compose -f x.yml exec -T web rm -rf /srv", "docker compose exec"),
    ("podman container run image rm -rf /srv", "podman container run"),
    ("kubectl exec pod -- rm -rf /srv", "kubectl exec"),
    ("kubectl -n prod exec -it pod -c web -- rm -rf /srv", "kubectl exec"),
    ("trap 'rm -rf /srv' EXIT INT", "trap"),
    ("trap -- 'rm -rf /srv' 0", "trap"),
    ("git rebase -i HEAD~2 --exec 'rm -rf /srv'", "git rebase --exec"),
    ("git rebase -x 'rm -rf /srv' main", "git rebase -x"),
    ("git rebase --exe='rm -rf /srv' main", "git rebase --exec"),
    ("git -C repo bisect run rm -rf /srv", "git bisect run"),
    ("git submodule foreach --recursive 'rm -rf /srv'", "git submodule foreach"),
    ("tar cf a.tar --checkpoint-action=exec='rm -rf /srv' b", "tar --checkpoint-action"),
    ("tar xf a.tar --to-command 'rm -rf /srv'", "tar --to-command"),
    ("rsync -e 'rm -rf /srv' a host:b", "rsync -e"),
    ("uv run --frozen rm -rf /srv", "uv run"),
    ("npx -c 'rm -rf /srv'", "npx -c"),
]  # fmt: skip


@table(("text", "via"), UNDERSTOOD)
def test_what_a_wrapper_runs_is_listed_and_nothing_is_in_doubt(text: str, via: str) -> None:
    tree = parse_tree(text)
    assert Command(RM, (via,), "", 0) in tree.commands
    assert tree.commands[0].via == (), "the wrapper itself is listed too, and first"
    assert tree.opaque == ()


@table(
    ("text", "words", "via"),
    [
        ("xargs rm -rf", ("rm", "-rf", None), "xargs"),
        ("xargs -0 -n 1 -P4 rm -rf", ("rm", "-rf", None), "xargs"),
        ("xargs -I{} rm -rf {} /srv", ("rm", "-rf", None, "/srv"), "xargs"),
        ("xargs -I % rm -rf a/%", ("rm", "-rf", None), "xargs"),
        ("xargs --arg-file=list rm", ("rm", None), "xargs"),
        ("find / -name x -exec rm -rf {} +", ("rm", "-rf", None), "find -exec"),
        (r"find / -execdir rm {} \; -print", ("rm", None), "find -execdir"),
        ("find / -ok rm a{} ';'", ("rm", None), "find -ok"),
        ("find / -okdir rm x ';'", ("rm", "x"), "find -okdir"),
        ("fd pattern -x rm -rf", ("rm", "-rf", None), "fd -x"),
        ("fd -HX rm {} /srv", ("rm", None, "/srv"), "fd -HX"),
        ("fd --exec-batch rm", ("rm", None), "fd --exec-batch"),
    ],
)
def test_words_that_come_from_elsewhere_are_none(text: str, words: tuple[str | None, ...], via: str) -> None:
    tree = parse_tree(text)
    assert Command(words, (via,)) in tree.commands
    assert tree.opaque == ()


def test_every_command_of_find_is_found() -> None:
    tree = parse_tree(r"find . -exec touch {} \; -o -exec rm + {} \; -exec chmod 0 {} +")
    assert [command.words[0] for command in tree.commands] == ["find", "touch", "rm", "chmod"]


def test_wrappers_in_wrappers() -> None:
    tree = parse_tree("sudo -u root env -i A=1 timeout 5 bash -lc 'nice sh -c \"rm -rf /srv\"'")
    assert tree.commands[-1] == Command(RM, ("sudo", "env", "timeout", "bash -c", "nice", "sh -c"))
    assert tree.opaque == ()


def test_a_split_string_of_env_is_taken_apart() -> None:
    tree = parse_tree("env -S 'A=1 rm -rf' /srv")
    assert Command(RM, ("env -S", "env")) in tree.commands
    assert parse_tree("env -S 'rm ${X}'").opaque


def test_an_alias_of_git_on_the_command_line() -> None:
    tree = parse_tree("git -c alias.st='!rm -rf /srv' st")
    assert Command(RM, ("git -c alias",)) in tree.commands
    assert tree.opaque


def test_arguments_of_a_shell_text_that_runs_them() -> None:
    assert Command(RM, ("bash -c",)) in parse_tree("bash -c 'exec \"$@\"' name rm -rf /srv").commands


def test_looking_a_command_up_does_not_run_it() -> None:
    assert [command.words for command in parse_tree("command -v rm").commands] == [("command", "-v", "rm")]


# Not understood, or not to the end; the text in the second place is part of the reason.
OPAQUE = [
    ("sh", "`sh` runs what it reads"),
    ("curl -s https://example.com/x | sh", "`sh` runs"),
    ("curl -s https://example.com/x | sudo bash -s -- a", "`bash` runs"),
    ("bash < file", "`bash` runs"),
    ("bash script.sh", "`bash` runs commands from a file"),
    ("bash --rcfile x -i", "--rcfile"),
    ("bash -c \"$CODE\"", "`bash -c` runs a text that is only known when it runs"),
    ("eval \"$CODE\"", "`eval`"),
    ("source ./env", "`source`"),
    (". ./env", "`.`"),
    ("sudo -i", "`sudo` runs what it reads"),
    ("su", "`su`"),
    ("sudo --odd rm x", "`sudo --odd`"),
    ("sudo $FLAGS rm x", "`sudo` is given a word"),
    ("timeout $T rm x", "`timeout` is given a word"),
    ("find . $(echo -exec) rm {} ';'", "`find` is given a word"),
    ("find . -{exec,x} rm {} ';'", "`find` is given a word"),
    ("find . -exec sh -c 'rm {}' ';'", "`sh -c` runs a text that is only known when it runs"),
    ("parallel rm ::: a b", "`parallel`"),
    ("coproc rm x", "`coproc`"),
    ("python3 -c 'import os'", "`python3` runs code"),
    ("python3.12 -W ignore -Ic 'import os'", "`python3.12` runs code"),
    ("python3 - < x", "`python3` runs code"),
    ("python3 <<'E'\nimport os\nE\n", "`python3` runs code"),
    ("perl -ne 'print'", "`perl` runs code"),
    ("ruby -e x", "`ruby` runs code"),
    ("node --eval=x", "`node` runs code"),
    ("awk '{print}' f", "`awk` runs code"),
    ("php -r x", "`php` runs code"),
    ("git -c core.pager=x log", "core.pager"),
    ("git -c core.sshCommand='rm x' fetch", "core.sshCommand"),
    ("git --exec-path=/x log", "--exec-path"),
    ("git $SUB", "`git` is given a sub-command"),
    ("git config alias.x '!rm y'", "`git config`"),
    ("alias ls=rm", "`alias`"),
    ("hash -p /x/ls ls", "`hash`"),
    ("enable -f x.so y", "`enable`"),
    ("shopt -s expand_aliases", "`shopt`"),
    ("env PATH=/x ls", "sets `PATH`"),
    ("sudo LD_PRELOAD=/x ls", "sets `LD_PRELOAD`"),
    ("read PATH", "sets `PATH`"),
    ("printf -v IFS x", "sets `IFS`"),
    ("test -v 'a[$(rm x)]'", "subscript"),
    ("unset 'a[$(rm x)]'", "subscript"),
    ("time { rm x; }", "`{` is in the place of"),
]  # fmt: skip


@table(("text", "reason"), OPAQUE)
def test_what_cannot_be_seen_is_said(text: str, reason: str) -> None:
    assert [said for said in parse_tree(text).opaque if reason in said]


@pytest.mark.parametrize("text", ["python3 x.py -c y", "python3 -m pytest -c z", "node app.js", "perl x.pl -e"])
def test_a_file_of_another_language_is_a_program_like_any_other(text: str) -> None:
    assert parse_tree(text).opaque == ()


@table(
    "name",
    "PATH LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES GIT_SSH_COMMAND GIT_DIR BASH_ENV ENV IFS PS4 PAGER MANPAGER "
    "LESSOPEN EDITOR VISUAL PYTHONPATH PERL5OPT NODE_OPTIONS RUBYOPT PROMPT_COMMAND TAR_OPTIONS HOME http_proxy "
    "RSYNC_RSH SHELLOPTS".split(),
)
def test_variables_that_change_how_programs_run(name: str) -> None:
    assert changes_programs(name)
    assert f"sets `{name}`" in parse_tree(f"{name}=x ls").opaque
    assert f"sets `{name}`" in parse_tree(f"export {name}=x").opaque


@pytest.mark.parametrize("name", ["A", "FOO", "DEBUG", "path", "TZ", "LANG", "CI"])
def test_variables_that_do_not(name: str) -> None:
    assert not changes_programs(name)
    assert parse_tree(f"{name}=x ls").opaque == ()


def test_words_that_are_not_literal_end_the_search() -> None:
    assert hand_on((UNKNOWN, Arg("rm"))).inner == ()
    assert hand_on(()).inner == ()
    assert hand_on((Arg("sudo"),)).inner == ()
    assert hand_on((Arg("sh"), Arg("-c"))).opaque


def test_sixteen_wrappers_and_no_more() -> None:
    assert parse_tree("nice " * 16 + "rm x").commands[-1].words == ("rm", "x")
    deep = parse_tree("nice " * 17 + "rm x")
    assert deep.commands[-1].words == ("nice", "rm", "x")
    assert "is nested too deeply at `nice`" in deep.opaque
