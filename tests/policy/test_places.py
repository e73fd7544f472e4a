"""What names alone say: paths that are refused as written, and files that something runs later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.tables import table

from signoff.policy.places import path_trouble, runs_later


@table(
    ("path", "why"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("a\0b", "invisible"),
        ("a\nb", "invisible"),
        ("a\x1b[2Kb", "invisible"),
        ("a\u202eb", "invisible"),
        ("a\u200bb", "invisible"),
        ("a\ud800b", "invisible"),
        ("~/x", "expanded here"),
        ("~root/.bashrc", "expanded here"),
        ("$HOME/x", "expand"),
        ("${HOME}/x", "expand"),
        ("a/$(id)", "expand"),
        ("%APPDATA%/x", "expand"),
        ("`id`", "expand"),
        ("..\\x", "backslash"),
        ("C:\\a", "backslash"),
        ("c:x", "drive"),
        ("a/../c:", "drive"),
        ("//host/share", "another machine"),
        ("/proc/self/environ", "kernel"),
        ("/a/../dev/null", "kernel"),
        ("/sys/x", "kernel"),
        ("NUL", "device"),
        ("a/nul ", "device"),
        ("nul.", "device"),
        ("aux.txt", "device"),
        ("cOm¹", "device"),
        ("lpt³/x", "device"),
        ("CONIN$", "device"),
        ("ＮＵＬ", "device"),
        ("note::$DATA", "stream"),
        ("note:s:$DATA", "stream"),
        (".git./config", "dot or a space"),
        (".ssh /x", "dot or a space"),
        ("package.json.", "dot or a space"),
        ("a" * 256, "255 bytes"),
        ("é" * 200, "255 bytes"),
        ("a/" * 2049, "4096 bytes"),
    ],
)
def test_paths_are_refused_with_a_reason(path: str, why: str) -> None:
    assert why in path_trouble(path)


@table(
    "path",
    ["a", "a/b", "./a", "../a", "/a/b", "a//b", "te..st", "test..", "....", "..a", "a b", "file~", "a/~b", "dollar$",
     "Q1_25%_growth", "com0", "com10", "null", "console", "caf\u00e9", "cafe\u0301", "日本語.txt", "std::vector.html",
     "12:30.log", ".", "..", "/", "a.b.c", "[x]", "a*b", "proc/x", "dev/null"],
)  # fmt: skip
def test_common_names_are_fine(path: str) -> None:
    assert path_trouble(path) == ""


@pytest.mark.parametrize("path", ["test.", "a /b", "12:30.log", "x. ."])
def test_windows_takes_more_for_something_else(path: str) -> None:
    assert path_trouble(path) == ""
    assert path_trouble(path, windows=True)


RUN_LATER = """
hooks a/workers .\U0001d406it/config
.git/config .git/hooks/pre-commit sub/.git/HEAD .GIT/config .git .gitattributes a/.gitmodules .gitconfig hooks/pre-push
.husky/pre-commit package.json a/b/package.json PACKAGE.JSON Makefile makefile GNUmakefile rules.mk conftest.py
tests/conftest.py sitecustomize.py usercustomize.py pyproject.toml setup.py setup.cfg tox.ini noxfile.py x.pth
.pre-commit-config.yaml .vscode/tasks.json .idea/workspace.xml .devcontainer/devcontainer.json .github/workflows/ci.yml
.gitlab-ci.yml .circleci/config.yml Jenkinsfile azure-pipelines.yml Dockerfile Dockerfile.dev docker-compose.yml
compose.yaml .bashrc .profile .zshrc .bash_profile ~/.ssh/authorized_keys authorized_keys .ripgreprc pip.conf .npmrc
.yarnrc.yml crontab etc/cron.d/x signoff.yaml signoff.yml .signoff/grants.db workers/triage.yaml workers/triage.md
toolsets.py requirements.txt requirements-dev.txt Cargo.toml build.rs .cargo/config.toml CMakeLists.txt build.gradle
vite.config.ts jest.config.js .eslintrc.js .envrc .mcp.json AGENTS.md .cursor/rules/x .claude/settings.json
node_modules/x/i.js venv/lib/python3/site-packages/x.py a/__pycache__/x.pyc x.service .config/fish/config.fish
.unknown-tool/settings.toml .\uff47it/config .g\u200cit/config GIT~1/config .git./config .git::$INDEX_ALLOCATION/config
knexfile.js knexfile.ts build.mjs versioneer.py roles/x/filter_plugins/y.py lookup_plugins/z.py hatch_build.py
opencode.jsonc lefthook.json QWEN.md CONVENTIONS.md aclocal.m4 m4/x.m4 build.sc build.mill toxfile.py rules/a.smk
test/mocha.opts package.json5
./.git/config a/../.git/config binding.gyp gems.rb Rakefile.rb build.ninja Build.PL CMakeUserPresets.json opencode.json
nodemon.json cdk.json project.json serverless.ts webpack.mix.js gatsby-node.js rector.php phpstan.neon conanfile.py
xmake.lua Setup.hs dune project.clj deps.edn magefile.go build.cake autorun.inf x.egg-info/entry_points.txt
""".split()


@table("path", RUN_LATER)
def test_what_is_run_later(path: str) -> None:
    assert runs_later(path)


@table(
    "path",
    ["a.py", "src/main.py", "README.md", "docs/index.html", ".gitignore", ".dockerignore", ".editorconfig",
     "src/hooks/useX.ts", "hooks/index.ts", "notes.txt", "workers/queue.py", "build/out.txt", ".env.example",
     ".well-known/x", "data/policy.csv", "git/config", "makefiles/a.txt", "a/../b.txt", ".", "", "a/b/",
     "tests/test_x.py", "Profile.tsx"],
)  # fmt: skip
def test_what_is_not(path: str) -> None:
    assert runs_later(path) == ""


@given(st.text(max_size=40), st.text(max_size=10))
@examples(2_000)
def test_any_text_is_judged_and_nothing_before_hides_a_place(before: str, after: str) -> None:
    path_trouble(before)
    runs_later(before)
    assert runs_later(f"{before}/.git/{after}")
    assert path_trouble(f"{before}\0{after}")
