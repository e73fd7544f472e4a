"""What policy is told of the disk: where paths lead, and the files that matter among those a pattern stands for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from tests.tables import table

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.disk_steps import DiskSteps
from signoff.found_files import expand
from signoff.links import followed, looked_up
from signoff.outside.outside_call import OutsideCall
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.shell.common_files import BELOW, KnownFiles

READS = {"allow": {"label": "proc.exec", "command": "read-only"}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    home, project = tmp_path / "home" / ".ssh", tmp_path / "project"
    home.mkdir(parents=True)
    (home / "id_rsa").write_text("key")
    for directory in ("src", "conf", "odd", "all"):
        (project / directory).mkdir(parents=True)
    (project / "notes").symlink_to(home / "id_rsa")
    (project / "docs").symlink_to(home)
    (project / "all" / "inner").symlink_to(home / "id_rsa")
    for file in ("README.md", "plan.txt", "src/a.py", "conf/.env", "conf/a.py", "odd/--files0-from=.npmrc"):
        (project / file).write_text("x")
    return project


def verdict(project: Path, command: str, *rules: Mapping[str, object]) -> Effect:
    """As a hook judges it."""
    policy = Layers((Policy.from_rules([*rules, READS], root=str(project)),))
    call = OutsideCall(
        agents=("claude",), session="s", call_id="c", tool="Bash", args={"command": command},
        directory=str(project), labels=frozenset({"proc.exec"}),
    )  # fmt: skip
    return policy.judge(call.read(policy)).effect


@table(
    "command",
    ["cat notes", "cat n*", "cat ./n?tes", "head -5 n*", "grep -h . n*", "tail -n 5 docs/*", "cat do*/id*",
     "grep -R . .", "grep -rn x all", "rg x all", "wc odd/*; cd odd && wc *", "cd odd && du *"],
)  # fmt: skip
def test_no_pattern_hides_a_link_to_a_secret_or_an_option(project: Path, command: str) -> None:
    assert verdict(project, command) is Effect.ASK


@table(
    "command",
    ["cat **/note", "cat d/**/note", "cat **/n*", "cat **/er/note", "tac ***/note", "cat d/**",
     'for f in **/note; do cat "$f"; done', "f=d; cat $f/**/note", "wc */**/no?e"],
)  # fmt: skip
def test_a_pattern_for_any_depth_finds_a_link_at_any(project: Path, command: str) -> None:
    deep = project / "d" / "a" / "b" / "c" / "d" / "e" / "f" / "g" / "er"
    deep.mkdir(parents=True, exist_ok=True)
    (project / "notes").unlink(missing_ok=True)
    (project / "docs").unlink(missing_ok=True)
    assert verdict(project, command) is Effect.ALLOW
    (deep / "note").symlink_to(project.parent / "home" / ".ssh" / "id_rsa")
    assert verdict(project, command) is Effect.ASK
    (deep / "note").unlink()


@table(
    ("where", "command", "effect"),
    [
        (".secrets", "cat prod", Effect.ASK),
        (".secrets", "cat < prod", Effect.ASK),
        (".secrets", "cat p?od", Effect.ASK),
        (".secrets", "grep -r x deep", Effect.ASK),
        (".secrets", "cd deep && cat prod", Effect.ASK),
        ("src/../.secrets", "head prod", Effect.ASK),
        ("sub/.aws", "wc -l prod", Effect.ASK),
        ("", "cat < notes", Effect.ASK),
        ("src", "cat < ../notes", Effect.ASK),
        (".secrets", "ls prod", Effect.ALLOW),
        ("src", "cat a.py", Effect.ALLOW),
        ("src", "cat < a.py", Effect.ALLOW),
    ],
)
def test_a_plain_name_is_seen_from_where_the_call_starts(
    project: Path, where: str, command: str, effect: Effect
) -> None:
    for directory in (".secrets/deep", "sub/.aws"):
        (project / directory).mkdir(parents=True, exist_ok=True)
    for file in (".secrets/prod", ".secrets/deep/prod", "sub/.aws/prod"):
        (project / file).write_text("x")
    policy = Layers((Policy.from_rules([READS], root=str(project)),))
    call = OutsideCall(
        agents=("gemini",), session="s", call_id="c", tool="Bash", args={"command": command},
        directory=os.path.realpath(project / where), labels=frozenset({"proc.exec"}),
    )  # fmt: skip
    assert policy.judge(call.read(policy)).effect is effect


def test_each_file_that_a_pattern_is_expanded_to_is_one_that_it_stands_for(project: Path) -> None:
    """Two readers of one language: what one finds on the disk, the other must know to be meant."""
    (project / "src" / "in" / "src").mkdir(parents=True, exist_ok=True)
    parts = ("**", "***", "*", "s*", "src", "?rc", "[!a]*")
    for pattern in ("/".join(found) for number in (1, 2, 3) for found in product(parts, repeat=number)):
        for path in expand(pattern, str(project), deep=True, count=DiskSteps()):
            assert KnownFiles({path: path}).standing_for(pattern), (pattern, path)
            assert KnownFiles({f"{path}/x": path}).standing_for(pattern + BELOW), (pattern, path)


@table(
    ("file", "line", "effect"),
    [
        (".ignore", "!.env", Effect.ASK),
        (".gitignore", "!.env*", Effect.ASK),
        ("conf/.rgignore", "!*", Effect.ASK),
        ("../.ignore", "!.[e]nv", Effect.ASK),
        (".git/info/exclude", "!.env", Effect.ASK),
        (".gitignore", "!.keep", Effect.ALLOW),
        (".gitignore", "# !.env", Effect.ALLOW),
        ("src/.ignore", "!.env", Effect.ALLOW),
    ],
)
def test_a_hidden_file_that_an_ignore_file_lets_in_is_searched(
    project: Path, file: str, line: str, effect: Effect
) -> None:
    (project / ".git" / "info").mkdir(parents=True, exist_ok=True)
    (project / file).write_text(f"*.log\n{line}\n")
    asks = {"ask": {"label": "proc.exec", "path": {"secret": True}}}
    for command in ("rg x conf", "rg --no-ignore-vcs x conf", "cd conf && rg x"):
        assert verdict(project, command, asks) is effect, command
    assert verdict(project, "rg x src", asks) is Effect.ALLOW
    (project / file).unlink()


def test_ignore_files_above_where_a_link_leads_count(project: Path) -> None:
    (project / "o" / "deep").mkdir(parents=True)
    (project / "o" / ".ignore").write_text("!.env\n")
    (project / "o" / "deep" / ".env").write_text("x")
    (project / "lnk").symlink_to("o/deep")
    asks = {"ask": {"label": "proc.exec", "path": {"secret": True}}}
    for command in ("rg x lnk", "rg x lnk/", "rg x lnk/../deep", "cd lnk && rg x", "cd lnk && rg x ."):
        assert verdict(project, command, asks) is Effect.ASK, command


@table(
    "command", ["cat *.md", "cat src/*", "grep -rn x src", "rg x conf", "wc -l *.txt", "ls", "ls *", "grep -rn x conf"]
)
def test_patterns_over_ordinary_files_are_allowed(project: Path, command: str) -> None:
    assert verdict(project, command) is Effect.ALLOW


@table(
    ("command", "effect"),
    [
        ("grep -rn x conf", Effect.ASK),
        ("rg --hidden x conf", Effect.ASK),
        ("cat conf/.e*", Effect.DENY),
        ("rg x conf", Effect.ALLOW),
        ("grep -rn x ./*", Effect.ASK),
        ("grep -rhn x ./con?", Effect.ASK),
        ("grep -rn x ./[c]onf", Effect.ASK),
        ("rgrep x ./*", Effect.ASK),
        ("rg -uuu x ./*", Effect.ASK),
        ("rg --hidden x ./*/", Effect.ASK),
        ("rg -g '*' x ./*", Effect.ASK),
        ("cd src && grep -rn x ../c*", Effect.ASK),
        ("cd src && grep -rn x ../src/../c*", Effect.ASK),
        ("grep -rn x ./sr*", Effect.ALLOW),
        ("grep -rn --include='*.py' x conf", Effect.ALLOW),
        ("grep -rn x src", Effect.ALLOW),
        ("cat conf/*", Effect.ALLOW),
        ("cat pl?n.txt", Effect.ALLOW),
    ],
)
def test_a_denied_name_is_found_where_it_is(project: Path, command: str, effect: Effect) -> None:
    assert verdict(project, command, {"deny": {"path": "**/.env"}}) is effect


@table(
    ("command", "effect"),
    [
        ("grep -rn x conf", Effect.ASK),
        ("grep -rn x ./?onf", Effect.ASK),
        ("grep -rhn x ./con?", Effect.ASK),
        ("grep -rn x ./[c]onf", Effect.ASK),
        ("grep -rn x **/conf", Effect.ASK),
        ("grep -rn x ***/c*", Effect.ASK),
        ("rg --hidden x ./**/conf", Effect.ASK),
        ("grep -rn x README.md ./?onf", Effect.ASK),
        ("rgrep x ./?onf", Effect.ASK),
        ("rg -uuu x ./?onf", Effect.ASK),
        ("rg --hidden x ./?onf/", Effect.ASK),
        ("rg -g '*' x ./?onf", Effect.ASK),
        ("cd src && grep -rn x ../?onf", Effect.ASK),
        ("cd src && grep -rn x ../src/../?onf", Effect.ASK),
        ("grep -rn x ./sr*", Effect.ALLOW),
        ("rg x ./?onf", Effect.ALLOW),
        ("wc -l ./?onf", Effect.ALLOW),
    ],
)
def test_a_pattern_for_directories_hides_nothing_below_them(project: Path, command: str, effect: Effect) -> None:
    rule: dict[str, object] = {"deny": {"label": ["fs.read", "fs.write"], "path": {"secret": True}}}
    assert verdict(project, command, rule) is effect


@table(
    ("command", "effect"),
    [
        ("tar cf x.tar .", Effect.ASK),
        ("tar cf - conf", Effect.ASK),
        ("tar -C conf -cf x.tar .", Effect.ASK),
        ("zip -r x.zip .", Effect.ASK),
        ("zip -qr - conf", Effect.ASK),
        ("rsync -a . out", Effect.ASK),
        ("rsync -a ./ out", Effect.ASK),
        ("cp -r . out", Effect.ASK),
        ("grep -d recurse x .", Effect.ASK),
        ("grep --directories=recurse x", Effect.ASK),
        ("7z a x.7z conf", Effect.ASK),
        ("find conf -delete", Effect.ASK),
        ("find . -name '*' -delete", Effect.ASK),
        ("find . -name '*.py' -o -delete", Effect.ASK),
        ("git clean -fdx", Effect.ASK),
        ("git add -f conf", Effect.ASK),
        ("git stash -a", Effect.ASK),
        ("git stash -u", Effect.ASK),
        ("git stash push --include-untracked", Effect.ASK),
        ("git mv conf c", Effect.ASK),
        ("find . -name '*.py' -delete", Effect.ALLOW),
        ("find src -delete", Effect.ALLOW),
        ("git clean -fd", Effect.ALLOW),
        ("git add conf", Effect.ALLOW),
        ("git stash", Effect.ALLOW),
        ("git mv src c", Effect.ALLOW),
        ("git commit -a -m x", Effect.ALLOW),
        ("tar cf x.tar src", Effect.ALLOW),
        ("zip -r x.zip src README.md", Effect.ALLOW),
        ("rsync -a src out", Effect.ALLOW),
        ("cp -r src out", Effect.ALLOW),
    ],
)
def test_a_rule_that_names_a_program_does_not_mean_a_denied_file_below(
    project: Path, command: str, effect: Effect
) -> None:
    commands = ["tar *", "zip -r *", "zip -qr *", "rsync *", "cp *", "grep *", "7z a *", "find *", "git *"]
    named = {"allow": {"tool": "Bash", "command": commands}}
    assert verdict(project, command, {"deny": {"path": "**/.env"}}, named) is effect


LED_AWAY = """
cp plan.txt out/x :: cp plan.txt out :: cp -r src out :: cp -t out plan.txt :: cp --target-directory=out plan.txt
cp -vtout plan.txt :: cp plan.txt ./src/../out/x :: cp plan.txt file :: cp plan.txt src/up/out :: mv plan.txt out/x
cp new.txt conf :: cp -t conf new.txt :: cp new.txt ./conf/ :: cp new.txt conf -v :: mv plan.txt hidden/x
cp plan.txt git/hooks/pre-commit :: cp plan.txt git/hooks :: ln plan.txt out/x :: ln -st out ../plan.txt
rm -rf out/x :: rm -rf out/ :: rm file :: tee file :: tee out/x :: tee src/up/file :: touch out/x :: mkdir -p out/x
chmod 777 file :: chmod -R 777 out/ :: chmod -RL 777 src :: sed -i s/a/b/ out/x :: sed -i -e s/a/b/ -e 1d out/x
sed -n 'p;w out/x' plan.txt :: dd if=plan.txt of=file :: tar xf x.tar -C out :: tar -xCout -f x.tar
tar xfC x.tar out :: tar --directory=out -xf x.tar :: tar xhf x.tar :: tar -xf x.tar --keep-directory-symlink
find out/ -delete :: find -L . -delete :: find src -follow -delete :: find . -type f -fprint out/x
rsync -a src/ out/ :: rsync -aK src/ conf :: curl -o out/x https://e.example :: curl -sLo file https://e.example
curl -F f=@out/x https://e.example :: curl -d @file https://e.example :: curl -T '{plan.txt,out/x}' https://e.example
gcc -o out/x a.c :: git clone . out/x :: git worktree add out/x :: git init out/x :: git apply --directory=out p
git format-patch -o out HEAD :: git commit -F file :: git mv plan.txt out/x :: sort -o file plan.txt
patch -o out/x a p :: unzip -d out x.zip :: make -C out :: pytest out :: pytest out/test_x.py :: pytest conf/*.py
pytest src/*.py out/*.py :: pytest --rootdir=out :: uv run pytest out :: python -m pytest out/test_x.py
ruff format out/x.py :: black out/x.py conf/*.py :: cd src && tee up/out/x :: cd src && cp ../plan.txt up/out
mytool out/x :: mytool file:1:2 :: mytool a,out/x :: docker build -f out/x . :: npm install out/x
prettier -w out/x.js
"""
STAYING = """
cp plan.txt x :: cp plan.txt ./src/y :: cp -r src inside :: cp plan.txt inside/x :: mv plan.txt inside :: tee inside/x
rm -rf inside/x :: rm src/a.py :: touch src/b.py :: mkdir -p a/b/c :: sed -i s/out/file/ plan.txt
dd if=plan.txt of=x :: tar xf x.tar :: tar xf x.tar -C inside :: tar czf x.tgz src :: find . -name '*.pyc' -delete
rsync -a src/ inside/ :: curl -o x https://e.example/out/file :: curl -d out https://e.example
git commit -m 'out and file' :: git add file :: git checkout -- file :: git add . :: git commit -am x :: git rm file
git push origin main :: git clone https://e.example/out x :: pytest :: pytest src :: pytest src/*.py -k 'out or file'
pytest inside/a.py::test :: uv run pytest -q inside :: ruff check src :: ruff format src inside :: black .
mytool inside/x plan.txt :: make -C inside all :: gcc -o x a.c :: npm install left-pad :: grep -rn x inside :: ls out
cat plan.txt
"""


def linked(project: Path) -> Path:
    """Links as a patch or an archive can make them: out of the directory, to settings of git, and inside."""
    (project / ".git" / "hooks").mkdir(parents=True)
    (project.parent / "other").mkdir()
    for name, target in {
        "out": "../other", "file": "../other/o.txt", "src/up": "..", "conf/new.txt": "../../other/o.txt",
        "conf/x.py": "../../other/x.py", "git": ".git", "hidden": ".git/hooks", "inside": "src",
    }.items():  # fmt: skip
        (project / name).symlink_to(target)
    return project


def under_star(project: Path, command: str) -> Effect:
    """As it is judged with `PROGRAM *` for each program in it, and nothing else."""
    programs = {part.split()[0] for part in command.split(" && ")} - {"cd"}
    more = {"python": ["python -m pytest *"], "uv": ["uv run pytest *"]}
    named = [pattern for name in programs for pattern in more.get(name, [f"{name} *"])]
    return verdict(project, command, {"allow": {"label": "proc.exec", "command": named}})


@table("command", [one.strip() for line in LED_AWAY.strip().splitlines() for one in line.split(" :: ")])
def test_no_wildcard_stands_for_a_place_that_a_link_leads_away_to(project: Path, command: str) -> None:
    assert under_star(project if (project / "out").is_symlink() else linked(project), command) is Effect.ASK


@table("command", [one.strip() for line in STAYING.strip().splitlines() for one in line.split(" :: ")])
def test_a_wildcard_stands_for_places_inside_and_links_between_them(project: Path, command: str) -> None:
    assert under_star(project if (project / "out").is_symlink() else linked(project), command) is Effect.ALLOW


def test_a_wildcard_in_a_word_stands_for_no_place_that_a_link_leads_away_to(project: Path) -> None:
    linked(project)
    for pattern, command, effect in (
        ("tee out?x", "tee out/x", Effect.ASK), ("cp plan.txt **", "cp plan.txt out/x", Effect.ASK),
        ("tee s*/b.py", "tee src/b.py", Effect.ALLOW), ("tee out/x", "tee out/x", Effect.ALLOW),
    ):  # fmt: skip
        rule = {"allow": {"label": "proc.exec", "command": pattern}}
        assert verdict(project, command, rule) is effect, (pattern, command)


PLACES = (
    "{0}", "{0}/", "{0}//", "./{0}", ".//{0}", "{0}/.", "src/../{0}", "./src/.././{0}/", "'{0}'", "{1}'{2}'", '"{0}"/',
    "{1}*", "[{1}]{2}", "?{2}", "{1}*/", "**/{0}", "./**/{0}", "***/{1}*", "*/../{0}", "src/../{1}*", "[!x]{2}",
    "{0}{{,}}",
)  # fmt: skip
"""Spellings of a name, of its first letter and of what follows."""


@table(
    ("command", "name"),
    [
        (command, name)
        for name, commands in {
            "conf": ("grep -rn x {}", "grep -rhn -e x -- {}", "rg --hidden x {}", "rg -uuu x {}", "cd {} && grep -r x",
                     "find {} -type f -exec grep x {{}} +", "for d in {}; do grep -r x $d; done",
                     "timeout 9 grep -r x {}"),
            "notes": ("cat {}", "cat < {}", "head -n 1 {}", "wc -l {}", "cat -- {}", "grep -h . {}", "sort {}",
                      "for f in {}; do cat $f; done", "ls; cat {}", "cat a {} b"),
        }.items()
        for command in commands
    ],
)  # fmt: skip
def test_no_spelling_hides_a_secret(project: Path, command: str, name: str) -> None:
    denies = {"deny": {"label": ["fs.read", "fs.write"], "path": {"secret": True}}}
    for place in PLACES:
        line = command.format(place.format(name, name[0], name[1:]))
        if name == "notes" and "*/" in line.rpartition("**/")[2]:
            continue  # only directories
        assert verdict(project, line, denies) is not Effect.ALLOW, line
        assert name == "conf" or verdict(project, line) is not Effect.ALLOW, line


@table(
    ("path", "command", "effect"),
    [
        ({"secret": True}, "grep -rn x conf", Effect.ASK),
        ({"secret": True}, "grep -rn x ./c*", Effect.ASK),
        ({"secret": True}, "rg -uuu x src ./con?", Effect.ASK),
        ({"secret": True}, "grep -rn x src", Effect.ALLOW),
        ({"secret": True}, "rg --hidden x", Effect.ASK),
        ({"secret": True}, "rg x conf", Effect.ALLOW),
        ({"hidden": True}, "grep -rn x conf", Effect.ASK),
        ({"hidden": True}, "grep -rn x ./c*", Effect.ASK),
        ({"code": True}, "grep -rn x odd", Effect.ALLOW),
        ({"outside": "."}, "grep -rn x src", Effect.ALLOW),
        ({"outside": "."}, "grep -rn x /etc", Effect.DENY),
    ],
)
def test_kinds_of_places_are_found_below_a_directory(
    project: Path, path: dict[str, object], command: str, effect: Effect
) -> None:
    assert verdict(project, command, {"deny": {"path": path}}) is effect


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_reads_what_it_tracks(project: Path) -> None:
    rule: dict[str, object] = {"deny": {"path": "**/.env"}}

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=project, check=True, capture_output=True)

    git("init", "-q")
    git("add", "README.md", "src")
    for command in ("git grep x", "git grep x -- src conf", "cd src && git grep x", "git -C conf grep x"):
        assert verdict(project, command, rule) is Effect.ALLOW, "it does not read what it does not track"
    for command in ("git grep --untracked x", "git grep --recurse-submodules x"):
        assert verdict(project, command, rule) is Effect.ASK
    git("add", "-f", "conf/.env")
    for command in ("git grep x", "git grep x -- conf", "git -C conf grep x", "cd conf && git grep x",
                    "git grep x HEAD", "cd src && git grep x -- :/", "git grep x -- ':(top)src'"):  # fmt: skip
        assert verdict(project, command, rule) is Effect.ASK, command
    for command in ("git grep x -- src", "git -C src grep x", "cd src && git grep x", "git grep x -- './src/*.py'"):
        assert verdict(project, command, rule) is Effect.ALLOW, command
    index = project / ".git" / "index"
    (project / "hidden").mkdir()
    (project / "hidden" / ".env").write_text("x")
    git("add", "-f", "hidden")  # a pattern of which the shell makes no name is git's, and matches any name
    for command in ("git grep x -- hidden/*", "git grep x -- 'hidden/*'", "git grep --untracked x hidden/*",
                    "git grep x HEAD -- h*n/*", "for f in 1 2; do git grep x -- hidden/*; done"):  # fmt: skip
        assert verdict(project, command, rule) is not Effect.ALLOW, command
    assert verdict(project, "git grep x -- src/*.py", rule) is Effect.ALLOW
    whole = index.read_bytes()
    git("update-index", "--index-version=4")
    assert verdict(project, "git grep x -- src", rule) is Effect.ASK, "an index that is not read"
    for damaged in (whole[:70], b"", whole[:12]):
        index.write_bytes(damaged)
        assert verdict(project, "git grep x -- src", rule) is Effect.ASK
    index.unlink()
    assert verdict(project, "git grep x -- src", rule) is Effect.ASK


def test_a_pattern_that_matches_a_denied_file_is_denied(project: Path) -> None:
    rule: dict[str, object] = {"deny": {"path": "plan.txt"}}
    assert verdict(project, "cat pl?n.txt", rule) is Effect.DENY
    (project / "plan.txt").unlink()
    assert verdict(project, "cat pl?n.txt", rule) is Effect.ASK  # it may be there when it runs


def test_a_denied_file_behind_a_linked_directory_is_found(project: Path) -> None:
    (project / "deep").mkdir()
    (project / "deep" / "up").symlink_to("..")
    (project / "linked").symlink_to("src")
    for command in ("grep -rn x linked", "grep -Rn x deep", "grep -rn x deep/up/linked", "grep -rn x deep/up/"):
        assert verdict(project, command, {"deny": {"path": "src/a.py"}}) is Effect.ASK, command


def test_what_is_not_looked_at_completely_is_in_doubt(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy.from_rules([{"deny": {"path": "**/.env"}}, READS], root=str(project))
    call = Call(tool="Bash", args={"command": "grep -rn x src"}, labels=frozenset({"proc.exec"}))
    assert looked_up(call, policy, str(project)).resolved == {}
    monkeypatch.setattr("signoff.policy.step_count.MOST_STEPS", 0)
    found = looked_up(call, policy, str(project))
    assert found.unseen
    assert policy.judge(found).effect is Effect.ASK
    assert "too many steps" in policy.judge(found).reason
    anything = Policy.from_rules([{"deny": {"path": "**/.env"}}, {"allow": "Bash"}], root=str(project))
    assert anything.judge(call).effect is Effect.ALLOW
    assert anything.judge(found).effect is Effect.ASK
    certain = Policy.from_rules([{"allow": "Bash"}], root=str(project))
    assert certain.judge(found).effect is Effect.ASK, "also where no rule looks at anything"
    denied = call.changed(args={"command": "grep -rn x src; cat .env"})
    assert policy.judge(looked_up(denied, policy, str(project))).effect is Effect.DENY


@table("ask", ["grep -rn x src", "ls src/*; cat src/*.py", "git grep x -- src"])
def test_names_that_are_looked_at_again_count_again(ask: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or one line could have the whole tree looked through as often as it has commands."""
    policy = Policy.from_rules([{"deny": {"path": "**/.env"}}, READS], root=str(project))
    looks: list[object] = []
    for name in ("scandir", "listdir"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, real=real: (looks.append(args), real(*args))[1])
    monkeypatch.setattr("signoff.policy.step_count.MOST_STEPS", 1_000)
    for times in (20, 40, 80):
        line = "; ".join(ask.replace("src", "./" * number + "src") for number in range(times))
        found = looked_up(Call(tool="Bash", args={"command": line}), policy, str(project))
        assert found.unseen
        assert policy.judge(found).effect is Effect.ASK
        assert len(looks) <= 3 * 20
        looks.clear()


@table(
    ("command", "looks_below"),
    [
        ("grep -rn x src", True),
        ("grep -rn x src; ls (", False),  # in doubt, whatever is there
        ("grep -rn x /", False),  # full of secrets, whatever is there
    ],
)
def test_a_tree_is_looked_through_only_if_that_can_matter(
    command: str, looks_below: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy.from_rules([{"deny": {"path": "**/.env"}}, READS, {"allow": "*"}], root=str(project))
    looks: list[object] = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda *args: (looks.append(args), real(*args))[1])
    found = looked_up(Call(tool="Bash", args={"command": command}), policy, str(project))
    assert bool(looks) is looks_below
    assert policy.judge(found).effect is (Effect.ALLOW if looks_below else Effect.ASK)


@table(("label", "effect"), [("fs.read", Effect.ALLOW), ("proc.exec", Effect.ASK)])
def test_what_others_have_published_is_looked_through_only_for_a_rule_that_applies(
    label: str, effect: Effect, project: Path
) -> None:
    published = project / "src" / "node_modules" / "x"
    published.mkdir(parents=True, exist_ok=True)
    (published / ".env").touch()
    denies = {"deny": {"label": label, "path": {"secret": True}}}
    assert verdict(project, "grep -rn x src", denies) is effect
    assert verdict(project, "grep -rn x conf", denies) is Effect.ASK, "a secret of the project is seen in any case"


@table("step", ["a/", "/a", "../", "~/", "é/", f"{'a' * 300}/"])
def test_a_text_that_is_no_path_is_not_followed(step: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not a single look at the disk, however long it is; and no rule about paths allows it."""
    looks: list[object] = []
    for name in ("lstat", "readlink", "stat"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, real=real, **more: (looks.append(args), real(*args, **more))[1])
    policy = Policy.from_rules([{"deny": {"path": "/srv/**"}}, {"allow": {"tool": "read", "path": "**"}}], root="/w")
    for size in (5_000, 10_000, 20_000):
        text = (step * size)[:size]
        assert followed(str(tmp_path), [text], DiskSteps()) == {}
        call = looked_up(Call(tool="read", args={"path": text}), policy, str(tmp_path))
        assert policy.judge(call).effect is Effect.ASK
    assert looks == []


@table("size", [500, 1_000, 2_000])
def test_a_path_takes_a_look_for_each_step(size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    looks: list[object] = []
    real = os.lstat
    monkeypatch.setattr(os, "lstat", lambda *args, **more: (looks.append(args), real(*args, **more))[1])
    followed(str(tmp_path), ["./" + "a/" * (size // 2)], DiskSteps())
    assert len(looks) <= size // 2 + len(tmp_path.parts) + 2
