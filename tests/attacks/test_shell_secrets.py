"""Ways to reach a secret, the network or code with programs that only read; each was found by an attack."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from signoff.policy.shell.command_facts import read_shell
from signoff.policy.sql import read_sql
from signoff.toolsets.builtin.shell.argv import run_line
from signoff.toolsets.builtin.shell.command_plan import plan

ASKS = r"""
csvformat -B .env
csvformat -TB .env
csvformat --out-no-doublequote .env
tac -s .env
zcat -fS nv .e
zcat --suffix=nv -f .e
gzip -dcS nv .e
gunzip -c -S nv .e
xzcat -S nv .e
zcat .env
zcat -f server.pem.gz
git grep '' -- '.e\nv'
git log -p -- '.e\nv'
git diff -- '\.env'
git log -p -- '[.]env'
git log -p -- '*nv'
git show ':0:.netrc'
git show 'HEAD:.netrc'
grep -r '' --include=.env .
grep -r '' --include='.e*' .
grep -r '' --include='.e\nv' .
grep -r '' --include='?env' .
grep -r '' --include='[.]env' .
grep -r '' --include='[!a-z]*' .
grep -r '' --exclude='[!.]*' .
grep -r '' --exclude='[^.]*' .
rg -g .env ''
rg --glob='.en*' ''
rg --iglob .ENV ''
rg -g '{.env,x}' ''
rg -g '.e\nv' ''
rg --type-add 'x:.env' -tx ''
rg --hidden --type-add 'x:*.zzz' S
rg S --type-add 'x:*.zzz' -.
ag -G '\.env' x
ag --hidden --file-search-regex env x
ack --type-set x:is:.env -t x .
ack --type-add 'x:match:/\.env$/' -t x .
lsof -i@evil.example
lsof -i @evil.example
lsof -i tcp@evil.example:80
lsof -ni4tcp@evil.example
hostname -A
hostname --all-fqdns
last -d
who --lookup
ss -r
ss dst evil.example
ss -t 'dst evil.example'
ss -F names
getent hosts evil.example
pip freeze
pip3 freeze --path x
pip list --path x
git whatchanged
cat .muttrc
cat ~/.lftprc
cat ~/.config/hcloud/cli.toml
cat ~/.config/filezilla/sitemanager.xml
cat recentservers.xml
cat .env_backup
cat .env-old
cat .env.bak
cat .envs/.production/.django
cat .netrc.gz
cat id_rsa.bak
cat secrets.yaml.old
cat /var/lib/mysql/db/users.ibd
cat /var/lib/postgresql/16/main/global/1260
"""
READS = r"""
zcat a.gz
zcat *.gz
zcat a.gz
git grep x -- '*.py'
git log -p -- 'src/*.py' ':!tests'
git show HEAD:src/a.py
git diff HEAD .
git diff src tests
grep -r x --include='*.py' .
grep -rn x --include='*.{js,ts}' --exclude-dir=node_modules .
grep -r x --exclude=.env .
grep -r x --exclude='*.min.js' src
rg -g '*.py' x
rg -g '!.env' x
rg -g '!*.lock' -tpy x
lsof -i
lsof -i :80
lsof -i4TCP:8080 -n -P
lsof -i@127.0.0.1:80
lsof src
hostname -I
hostname -f
netstat -tlnp
ss -tlnp
ss -t state established '( dport = :443 or sport = :ssh )'
ss dst 10.0.0.1
last -5
who
pip list
pip show x
cat .env.example
cat .env-example
cat notes.txt.gz
cat src/main.py.orig
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize("command", lines(ASKS))
def test_what_reaches_for_a_secret_asks(command: str) -> None:
    facts = read_shell(command)
    assert not facts.read_only and facts.why


@pytest.mark.parametrize("command", lines(READS))
def test_what_does_not_is_still_allowed(command: str) -> None:
    assert read_shell(command).why == ""


SECRET = "the-password"
DEEP = (
    "grep -r '' .",
    "grep -r ''",
    "grep -R '' ./",
    "rgrep '' .",
    "diff -N . empty",
    "diff -r empty .",
    "git diff --no-index empty .",
    "git diff empty .",
    "rg -uu '' .",
    "rg --hidden ''",
    "rg -g '*' ''",
    "cd sub && grep -r '' ..",
    "cd sub; grep -r x .",
    "grep -r '' --exclude='*.md' --include='*.py' .",
    "grep -r '' --exclude=.env --include='*' .",
    "grep -r '' sub*",
    "cat a.txt && grep -rh '' sub",
)
SHALLOW = (
    "grep -r '' --include='*.py' .",
    "grep -r '' --exclude='.env*' .",
    "grep -r '' --exclude=.env .",
    "grep -r '' empty src",
    "grep -r '' a.t*",
    "grep '' a.txt",
    "rg x",
    "rg -g '*.py' x",
    "rg -g '!*.md' x",
    "diff a.txt a.txt",
    "git diff HEAD .",
    "git diff .",
    "diff -r -x .env src empty",
    "grep -r '' --exclude-dir=sub --exclude=.env .",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "root"
    for directory in ("sub", "empty", "src/.venv/certs", ".git", "node_modules/x"):
        (root / directory).mkdir(parents=True)
    (root / "a.txt").write_text("plain\n")
    (root / "src" / "key.pem").write_text("a key for tests\n")
    (root / "src" / ".venv" / "certs" / "cacert.pem").write_text("certificates\n")
    (root / "src" / ".env.example").write_text("PASSWORD=\n")
    (root / "node_modules" / "x" / ".npmrc").write_text("a = b\n")
    return root


@pytest.mark.parametrize("command", DEEP)
def test_reading_a_whole_directory_sees_what_is_below_it(command: str, root: Path) -> None:
    before = plan(command, str(root))
    assert before.line is not None or ".." in command, before.why
    (root / ".env").write_text(f"PASSWORD={SECRET}\n")
    (root / "sub" / ".env").write_text(f"PASSWORD={SECRET}\n")
    after = plan(command, str(root))
    assert after.line is None
    assert ".." in command or (".env`" in after.why and "reads everything below" in after.why)


@pytest.mark.parametrize("command", ["rg -L ''", "rg --follow '' .", "grep -R '' ."])
def test_a_link_that_is_followed_is_seen(command: str, root: Path) -> None:
    assert plan(command, str(root)).why == ""
    (root.parent / ".netrc").write_text(SECRET)
    (root / "plain.txt").symlink_to("../.netrc")
    assert "leads to" in plan(command, str(root)).why


@pytest.mark.parametrize("command", SHALLOW)
def test_what_keeps_the_secret_out_is_allowed(command: str, root: Path) -> None:
    (root / ".env").write_text(f"PASSWORD={SECRET}\n")
    (root / "sub" / ".env").write_text(f"PASSWORD={SECRET}\n")
    assert plan(command, str(root)).why == ""


async def test_what_is_allowed_prints_no_secret(root: Path) -> None:
    (root / ".env").write_text(f"PASSWORD={SECRET}\n")
    (root / "sub" / ".env").write_text(f"PASSWORD={SECRET}\n")
    ran = 0
    for command in (*DEEP, *SHALLOW, "zcat -fS nv .e", "grep -rh PASS ."):
        made = plan(command, str(root))
        if made.line is not None:
            outcome = await run_line(made.line, root=str(root), steps=made.steps)
            assert SECRET not in outcome.out, command
            ran += 1
    assert ran >= len(SHALLOW)


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("cd src && grep -r x .", False),
        ("cd src/.venv; cd certs && grep -r x", False),
        ("cd src && cd .. && grep -r x", True),
        ("cd nothing; grep -r x", True),
        ("cd nothing && cd src; grep -r x", True),
        ("true || cd src; grep -r x", True),
        ("cd src && cat key; cd ..; grep -r x", True),
        ("cat a.txt && cd src && grep -r x", False),
    ],
)
def test_only_the_directory_that_cd_leads_to_counts(command: str, asks: bool, root: Path) -> None:
    (root / ".env").write_text(f"PASSWORD={SECRET}\n")
    assert bool(plan(command, str(root)).why) is asks


@pytest.mark.parametrize("name", [".aws/credentials", ".ssh/id_rsa", ".netrc", ".docker/config.json", "x/.env.local"])
def test_a_secret_that_is_known_by_a_hidden_name_is_seen(name: str, root: Path) -> None:
    assert plan("grep -r x .", str(root)).why == ""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(SECRET)
    assert name in plan("grep -r x .", str(root)).why


def test_a_link_below_that_leads_to_a_secret_is_seen(root: Path, tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (root / "sub" / "notes").symlink_to(tmp_path / ".ssh" / "id_rsa")
    assert "leads to" in plan("grep -R x .", str(root)).why


def test_a_directory_too_large_to_look_through_is_not_waited_for(root: Path) -> None:
    loop = root / "sub" / "again"
    loop.symlink_to(root / "sub")
    assert plan("grep -r x sub", str(root)).why == ""


@pytest.mark.skipif(shutil.which("zcat") is None, reason="needs zcat")
def test_a_suffix_that_a_program_adds_leads_where_its_link_leads(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / ".ssh" / "id_rsa"
    secret.parent.mkdir()
    secret.write_text(SECRET)
    assert plan("zcat -f notes", str(root)).why == ""
    (root / "notes.gz").symlink_to(secret)
    for command in ("zcat -f notes", "zgrep x notes", "gzip -dcf notes"):
        assert plan(command, str(root)).line is None, command


def test_dots_behind_a_link_lead_from_where_it_leads(root: Path, tmp_path: Path) -> None:
    there = tmp_path / ".aws" / "deep"
    there.mkdir(parents=True)
    (there.parent / "config").write_text(SECRET)
    (root / "sub" / "l").symlink_to(there)
    (root / "sub" / "config").write_text("plain\n")
    for command in (f"cd {root}/sub && cat l/../config", "cat sub/l/../config", "cd sub && cat l/../config",
                    "cat < sub/l/../config", "cd sub && cat l/../c*"):  # fmt: skip
        assert plan(command, str(root)).line is None, command
    assert plan(f"cd {root}/sub && cat ../sub/config", str(root)).why == ""


def test_cd_takes_dots_by_the_text(root: Path, tmp_path: Path) -> None:
    there = tmp_path / "far" / "deep"
    there.mkdir(parents=True)
    (root / "l").symlink_to(there)
    (root / "config").symlink_to(tmp_path / ".aws" / "config")
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(SECRET)
    assert plan("cd l/.. && cat config", str(root)).line is None
    assert os.path.realpath(root / "l" / "..") != str(root)


SQL = r"""
SELECT * FROM information_schema.user_mapping_options
SELECT * FROM information_schema._pg_user_mappings
SELECT * FROM pg_user_mapping
SELECT * FROM pg_user_mappings
SELECT rolpassword FROM pg_authid
SELECT * FROM pg_catalog.pg_shadow
SELECT * FROM pg_hba_file_rules
SELECT * FROM pg_file_settings
SHOW primary_conninfo
SHOW "primary_conninfo"
SHOW app.jwt_secret
SHOW all
SHOW ALL
SELECT name, setting FROM pg_settings
SELECT * FROM pg_catalog.pg_settings
SELECT * FROM pg_foreign_server
SELECT current_setting('primary_conninfo')
SELECT current_setting('primary_conninfo', true)
SELECT current_setting('primary_' || 'conninfo')
SELECT current_setting(name) FROM pg_settings
SELECT current_setting(E'primary_conn\x69nfo')
SELECT pg_catalog.current_setting('ssl_passphrase_command')
"""


@pytest.mark.parametrize("query", lines(SQL))
def test_a_database_does_not_show_its_secrets(query: str) -> None:
    assert read_sql(query, "postgres").why.startswith("discloses:")
    assert not read_sql(query).read_only


@pytest.mark.parametrize("query", ["SELECT * FROM mysql.user", "SELECT * FROM mysql.servers", "SHOW CREATE USER ana"])
def test_nor_does_mysql(query: str) -> None:
    assert read_sql(query, "mysql").why.startswith("discloses:")


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM pg_stat_ssl", "SHOW password_encryption", "SHOW work_mem", "SELECT current_setting('work_mem')"],
)
def test_what_a_database_may_show(query: str) -> None:
    assert read_sql(query, "postgres").read_only


@pytest.mark.parametrize(
    "command",
    ["grep -r . .m2", "cd .m2; grep -r . .", "diff settings.xml .m2", "grep -R x lk", "grep -R --exclude=up x lk"],
)
def test_a_directory_of_credentials_read_by_its_own_name_or_behind_a_link(tmp_path: Path, command: str) -> None:
    root = tmp_path / "work"
    (root / ".m2").mkdir(parents=True)
    (root / ".m2" / "settings.xml").write_text("<password>x</password>")
    (root / "settings.xml").write_text("x")
    (root / "lk").mkdir()
    other = tmp_path / "other"
    other.mkdir()
    (other / ".env").write_text("x=1")
    (root / "lk" / "up").symlink_to(other)

    assert plan(command, os.path.realpath(root)).line is None


@pytest.mark.parametrize(
    "command",
    ["unzip -p b.zip .env", "unzip -c b.zip '.e*'", "unzip -p b.zip '*.pem'", "sysctl -n kernel.//.//.self.environ"],
)
def test_members_of_archives_and_settings_are_held_against_the_list_too(command: str) -> None:
    assert not read_shell(command).read_only
