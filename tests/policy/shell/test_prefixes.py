"""What may be remembered of a command line: the words that stay, and names that may vary; never more than it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import corpora
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.tables import table

from signoff.policy.shell.prefixes import prefix_of
from signoff.policy.shell.syntax_tree import parse_tree

BASH = shutil.which("bash")

PREFIXES = {
    "pytest": "pytest *",
    "pytest tests/a.py": "pytest *",
    "'pytest' \"tests/a.py\"": "pytest *",
    "pytest -x tests/a.py::test_one tests/b": "pytest -x *",
    "pytest -k slow tests": "pytest -k slow *",
    "pytest tests -p plugin more": "pytest tests -p plugin *",
    "python -m pytest -q": "python -m pytest -q *",
    "uv run pytest tests": "uv run pytest *",
    "pytest ./tests/ pkg/test_a.py unit_tests/b.py app/models_test.py tests.py": "pytest *",
    "pytest --rootdir=/tmp/x tests": "pytest --rootdir=/tmp/x *",
    "go test ./...": "go test *",
    "go build -o bin/x ./cmd/x": "go build -o bin/x *",
    "ruff check --fix src pkg/a.py stubs/b.pyi": "ruff check --fix *",
    "mypy --strict src": "mypy --strict *",
    "pylint ./src pkg/a.py": "pylint *",
    "shellcheck ci.sh": "shellcheck *",
    "vitest run src/components a.test.ts": "vitest run *",
    "bun test cart ./src/b.spec.tsx": "bun test *",
    "rspec spec/a_spec.rb": "rspec *",
    "bundle exec rspec spec/a_spec.rb": "bundle exec rspec *",
    "phpunit tests/CartTest.php": "phpunit *",
    "mix test test/a_test.exs": "mix test *",
    "mkdir -p a/b": "mkdir -p *",
}


@table(("line", "prefix"), PREFIXES.items())
def test_the_words_that_stay(line: str, prefix: str) -> None:
    found = prefix_of(line)
    assert found is not None and f"{found.words} *" == prefix


NONE = """
    rm -r build
    make test
    npx jest
    python tests/a.py
    python -m http.server
    uv run python a.py
    bash -c pytest
    sudo pytest
    env pytest
    ./pytest
    /tmp/pytest
    PYTEST
    FOO=1 pytest
    pytest; rm x
    pytest && rm x
    pytest | sh
    pytest &
    pytest > out.txt
    pytest < in.txt
    pytest 2>&1
    cd web && npm test
    pytest $(id)
    pytest `id`
    pytest $HOME
    pytest tests/*
    pytest tests/[ab].py
    pytest {a,b}
    pytest ~/x
    pytest /etc/x
    pytest ../x
    pytest tests/../../x
    pytest tests//x
    pytest @options.txt
    pytest rootdir=/tmp
    pytest http://example.com/x
    pytest 'a b'
    pytest 'tests/;id'
    pytest ''
    git add a.txt
    pytest .
    pytest .env
    ruff format .git/hooks/pre-commit
    python3 -m unittest link.mod
    pytest --pyargs pkg link.mod
    jest --reporters default
    git push origin
    mkdir -p .git/hooks
"""
TO_ANOTHER_PROGRAM = """
    npm test
    npm test web
    npm test script.txt
    npm test -- --grep fast web
    npm run build web
    npm run build-and-deploy staging
    npm run env node
    npm run
    pnpm test web
    pnpm run test:unit web
    yarn test web
    yarn run node evil.js
    pdm run pytest tests
    make test
    dotnet test tests
    dotnet test evil.dll
    cargo build
    cargo test deploy
    go test ./a -args ./b
    go test -v ./a --args=x ./b
"""
RUN_OR_PRINTED = """
    pytest notes.txt
    pytest notes.txt/
    pytest docs/notes.rst
    pytest tests/notes.txt::x
    pytest deploy.py
    pytest scripts/deploy.py
    pytest latest/deploy.py
    pytest greatest.py
    rspec deploy.rb
    rspec runme
    rspec spec/
    phpunit deploy.php
    phpunit tests
    phpunit a.phpt
    mix test deploy.exs
    mix test test
    bun test ./deploy.ts
    bun test ./deploy
    vitest run ./deploy.ts
    eslint vendor/a.js
    prettier --write vendor/a.js
    rubocop vendor/a.rb
    tsc a.ts
    ruff check keys.json
    ruff format notes.md
    shellcheck notes.txt
"""
FOUND_ELSEWHERE = """
    go test net/http
    go test ...
    go build cmd
    go vet all
    go build example.com/x@latest
    go build ./x@latest
    pylint os
    pylint os.path
    pylint email/mime
    pylint email/
    pytest a.b
    pytest --pyargs json
    pytest -o addopts=--pyargs json
    mypy os.path
"""


def each(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@table("line", each(NONE))
def test_no_prefix(line: str) -> None:
    assert prefix_of(line) is None


@table("line", each(TO_ANOTHER_PROGRAM))
def test_no_prefix_where_names_go_to_another_program_or_choose_what_is_built(line: str) -> None:
    assert prefix_of(line) is None


@table("line", each(RUN_OR_PRINTED))
def test_no_prefix_for_files_that_a_program_runs_or_prints_though_they_are_none_of_its_own(line: str) -> None:
    assert prefix_of(line) is None


@table("line", each(FOUND_ELSEWHERE))
def test_no_prefix_for_names_that_may_be_found_elsewhere(line: str) -> None:
    assert prefix_of(line) is None


def test_pytest_runs_nothing_but_tests_behind_a_prefix(tmp_path: Path) -> None:
    """Files that leave a mark when they are run, given to the real program."""
    directories, stems = ("", "docs/", "scripts/"), ("deploy", "notes", "latest", "test_a", "b_test")
    names = [
        f"{at}{stem}{end}" for at in directories for stem in stems for end in ("", ".py", ".txt", ".rst", ".PY", ".md")
    ]
    for number, name in enumerate(names):
        mark = f"open({os.fspath(tmp_path / f'{number}.ran')!r}, 'w')"
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{mark}\n" if name.lower().endswith(".py") else f">>> _ = {mark}\n")

    def ran(given: list[str]) -> set[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir=.", "--import-mode=importlib"]
        plain = {
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }  # they have no say in it, and take time
        command += ["-p", "no:cacheprovider", *given]
        subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, check=False)
        return {name for number, name in enumerate(names) if (tmp_path / f"{number}.ran").exists()}

    like = [name for name in [*names, *(f"{name}/" for name in names)] if prefix_of(f"pytest {name}")]
    assert ran([name for name in like if "." not in name]) == set(), "a file that looks like a directory is not run"
    tests = {f"{at}{stem}.py" for at in directories for stem in ("test_a", "b_test")}
    assert ran([name for name in like if "." in name]) == tests
    others = {"deploy.py", "scripts/latest.py", "notes.txt", "docs/notes.rst"}
    assert others.isdisjoint(like) and ran(sorted(others)) == tests | others, "which it would have run"


def test_a_prefix_is_one_readable_line() -> None:
    assert prefix_of(f"pytest -k {'x' * 200}") is None
    assert prefix_of("pytest -k 'a\nb' tests") is None
    assert prefix_of("pytest -k 'a or b' tests") is None, "its words would not be told apart"
    assert prefix_of("pytest\ttests") is not None


# --- whatever the line ---

BITS = (
    *(" ", "  ", "\t", "\n", ";", "&", "&&", "|", "||", "(", ")", "{", "}", "<", ">", ">>", "$", "$(", "`", '"', "'"),
    *("\\", "#", "*", "?", "[", "]", "~", "/", "..", "../", "=", ":", "::", "@", "-", "--", "-x", "-p", "--c=/tmp"),
    *("pytest", "go", "test", "ruff", "tests", "a.py", "sh", "id", "A=1", "!", "%", "^", "\0", "\r"),
    *("\u202e", "\u00a0", "é"),
)
lines = st.builds(
    "{}{}".format,
    st.sampled_from(["pytest ", "pytest -x ", "go test ", "ruff check ", "mkdir ", ""]),
    st.lists(st.sampled_from(BITS), max_size=7).map("".join),
)


@given(lines)
@example("pytest -x tests/a.py::b")
@examples(20_000, daily=50)
def test_a_line_with_a_prefix_is_one_command_of_these_words_and_names(line: str) -> None:
    """Held against the full parse, which is another program than the strict one."""
    if (found := prefix_of(line)) is None:
        return
    [command] = parse_tree(line).commands
    assert list(command.words) == [*found.words.split(" "), *found.names]
    assert not parse_tree(line).writes and not parse_tree(line).reads
    for name in found.names:
        assert not name.startswith(("-", "/", "~", "@")) and ".." not in name.split("/")
        assert name.isascii() and name.isprintable() and not set(name) & set(" =*?[]{}$`\\'\"<>|&;()!#%^~")


FUNCTIONS = " ".join(f'{name}() {{ say {name} "$@"; }};' for name in ("pytest", "go", "ruff", "mkdir"))
SAY = f'say() {{ printf "%s\\0" "$@"; }}; {FUNCTIONS}'


@pytest.mark.skipif(BASH is None, reason="there is no bash to compare with")
@given(lines)
@examples(2_000, daily=50, suppress=[HealthCheck.function_scoped_fixture])
def test_bash_runs_exactly_that(tmp_path: Path, line: str) -> None:
    found = prefix_of(line)
    if found is None or BASH is None:
        return
    done = subprocess.run(
        [BASH, "--norc", "-c", f'{SAY} command_not_found_handle() {{ say none; }}; eval "$1"', "_", line],
        cwd=tmp_path,
        env={"PATH": "", "HOME": os.fspath(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\0")[:-1] == [*found.words.split(" "), *found.names], done.stderr


@given(lines, lines)
@examples(20_000, daily=40)
def test_two_lines_with_one_prefix_differ_in_names_only(one: str, other: str) -> None:
    first, second = prefix_of(one), prefix_of(other)
    if first is not None and second is not None and first.words == second.words:
        words = [parse_tree(line).commands[0].words for line in (one, other)]
        assert words[0][: -len(first.names) or None] == words[1][: -len(second.names) or None]


@pytest.mark.skipif(not corpora.DIRECTORY.is_dir(), reason="the corpora are not part of the project")
def test_no_dangerous_command_is_like_one_that_anybody_would_approve() -> None:
    """Those that have a prefix only make directories: no harmful line hides behind a test or a check."""
    found = {prefix.words for case in corpora.shell_cases() if case.dangerous and (prefix := prefix_of(case.text))}
    assert all(text.startswith("mkdir") for text in found), found
