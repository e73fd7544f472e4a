"""Files that no directory stands for: settings, scripts, backups, and whatever holds secrets or is run by tools."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.test_places import RUN_LATER
from tests.policy.test_secret import SECRET
from tests.profiles import examples
from tests.tables import table

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.policy.places import runs_later
from signoff.policy.secret import secret_place
from signoff.policy.sensitive_files import sensitive_place

RUN = """
    a.sh deploy.bash x.ps1 x.bat x.cmd bin/x bin/x.py scripts/a.py script/a hooks/x hooks/useX.ts workers/queue.py
    a/workers/b/c.txt a/bin manage.py docs/conf.py alembic/env.py playbook.yml main.tf phpunit.xml phpunit.xml.dist
    spec/spec_helper.rb karma.conf.js wdio.conf.ts vitest.workspace.ts lib/tasks/db.rake .pnpmfile.cjs pnpmfile.cjs
    CLAUDE.local.md entrypoint entrypoint.py docker-entrypoint.txt pre-commit tools/post-merge commit-msg Thorfile
    config.ru lib/libx.so.1 jest.setup.ts setupTests.js prompts/system.md .claude/x a/agents/triage.md x.instructions.md
    DEPLOY.SH deploy.ｓｈ deploy.s\u200bh BIN/x Scripts/x gunicorn.conf.py
""".split()
HELD = """
    database.yml config/database.yml keys.json tokens.json a.gpg secring.gpg dump.sql backup.sql.gz rootkey.csv
    accessKeys.csv my_accessKeys.csv wg0.conf env.production env.prod.txt bitwarden_export.json app.toml x.ini x.cnf
    app/settings.py local_settings.py src/config.ts tokenizer_config.json db.sqlite3 data.db recovery-codes.txt
    oauth.json users-backup.json a.har wallet.json KEYS.JSON x.dump notes.bak
""".split()
ORDINARY = """
    a.txt notes/a.md docs/index.html report.csv data/list.json locales/en.json src/main.py src/app.ts src/lib.rs a.go
    src/Profile.tsx src/profile.py README README.md LICENSE CHANGELOG.md a/b src src/app img/logo.svg photo.jpg a.pdf
    run.log a.ipynb style.css tests/test_x.py binary/x scripts bin update build.md keys.md docs/secrets.md
    docs/config monkey.txt keyboard.json package/a.js environment.md wireguard.md post-mortem.md pre-release
    ana ana@example.com ops@example.ru example.com notion.so https://example.com/a?b=c 1.2.3 settings config backup
    section/settings feature/login #ops C0442 production dev deploy
""".split()


@table("path", [*RUN, *HELD, *RUN_LATER, *SECRET.split()])
def test_no_directory_stands_for_it(path: str) -> None:
    assert sensitive_place(path)
    assert sensitive_place(f"notes/{path}") or path[0] in "/~", "wherever it lies"


@table("path", ORDINARY)
def test_a_directory_stands_for_an_ordinary_file_and_nothing_is_read_into_other_texts(path: str) -> None:
    assert sensitive_place(path) == ""


@given(st.text(max_size=60))
@examples(2_000)
def test_it_is_never_weaker_than_what_people_are_asked_about(path: str) -> None:
    assert bool(sensitive_place(path)) >= bool(secret_place(path) or runs_later(path))


def test_names_of_directories_count_below_the_root_only() -> None:
    assert sensitive_place("/srv/bin/project/notes/a.md")
    assert sensitive_place("/srv/bin/project/notes/a.md", "/srv/bin/project") == ""
    assert sensitive_place("/srv/bin/project/bin/a.md", "/srv/bin/project")
    assert sensitive_place("/srv/bin/projects/a.md", "/srv/bin/project")
    assert sensitive_place("/srv/x/.ssh/a.md", "/srv/x/.ssh"), "a place for secrets is one, whoever works there"


@pytest.mark.parametrize(
    ("path", "leads", "effect"),
    [
        ("notes/a.md", "/srv/p/notes/a.md", Effect.ALLOW),
        ("notes/run.sh", "/srv/p/notes/run.sh", Effect.ASK),
        ("notes/a.md", "/srv/p/notes/keys.json", Effect.ASK),
        ("notes/keys.json", "/srv/p/notes/a.md", Effect.ASK),
    ],
)
def test_a_rule_says_so_as_written_and_where_links_lead(path: str, leads: str, effect: Effect) -> None:
    rules = [{"allow": {"tool": "write", "path": {"matches": "notes/**", "sensitive": False}}}]
    policy = Policy.from_rules(rules, file="<test>", name="test", root="/srv/p")
    call = Call(tool="write", args={"path": path}, start="/srv/p", resolved={path: leads})
    assert policy.judge(call).effect is effect
