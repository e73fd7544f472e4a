"""What may be remembered of a command line: the words that stay, and names that may vary; never more than it says."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from benchmarks import corpora
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.policy.shell.prefixes import prefix_of
from signoff.policy.shell.tree import parse_tree

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
    "npm test": "npm test *",
    "npm run build:prod web": "npm run build:prod *",
    "npm test -- --grep fast web": "npm test -- --grep fast *",
    "npm run build --script-shell=/bin/x a": "npm run build --script-shell=/bin/x *",
    "go test ./...": "go test *",
    "cargo test --release fast": "cargo test --release *",
    "ruff check --fix src": "ruff check --fix *",
    "mkdir -p a/b": "mkdir -p *",
}


@pytest.mark.parametrize(("line", "prefix"), PREFIXES.items())
def test_the_words_that_stay(line: str, prefix: str) -> None:
    found = prefix_of(line)
    assert found is not None and found.text == prefix


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
    npm run env node
    npm run start x
    yarn run node evil.js
    yarn run tsx x
    python3 -m unittest link.mod
    pytest --pyargs pkg link.mod
    jest --reporters default
    git push origin
    npm run
    npm run -- x
    npm run $SCRIPT
    mkdir -p .git/hooks
"""


@pytest.mark.parametrize("line", [line.strip() for line in NONE.strip().splitlines()])
def test_no_prefix(line: str) -> None:
    assert prefix_of(line) is None


def test_a_prefix_is_one_readable_line() -> None:
    assert prefix_of(f"pytest -k {'x' * 200}") is None
    assert prefix_of("pytest -k 'a\nb' tests") is None
    assert prefix_of("pytest -k 'a or b' tests") is None, "its words would not be told apart"
    assert prefix_of("pytest\ttests") is not None


# --- whatever the line ---

BITS = (
    *(" ", "  ", "\t", "\n", ";", "&", "&&", "|", "||", "(", ")", "{", "}", "<", ">", ">>", "$", "$(", "`", '"', "'"),
    *("\\", "#", "*", "?", "[", "]", "~", "/", "..", "../", "=", ":", "::", "@", "-", "--", "-x", "-p", "--c=/tmp"),
    *("pytest", "npm", "test", "run", "tests", "a.py", "sh", "id", "A=1", "!", "%", "^", "\0", "\r"),
    *("\u202e", "\u00a0", "é"),
)
lines = st.builds(
    "{}{}".format,
    st.sampled_from(["pytest ", "pytest -x ", "npm test ", "npm run build ", "mkdir ", ""]),
    st.lists(st.sampled_from(BITS), max_size=7).map("".join),
)


@given(lines)
@example("pytest -x tests/a.py::b")
@examples(20_000)
def test_a_line_with_a_prefix_is_one_command_of_these_words_and_names(line: str) -> None:
    """Held against the full parse, which is another program than the strict one."""
    if (found := prefix_of(line)) is None:
        return
    [command] = parse_tree(line).commands
    fixed = found.text.split(" ")
    assert fixed.pop() == "*"
    assert list(command.words) == [*fixed, *found.names]
    assert not parse_tree(line).writes and not parse_tree(line).reads
    for name in found.names:
        assert not name.startswith(("-", "/", "~", "@")) and ".." not in name.split("/")
        assert name.isascii() and name.isprintable() and not set(name) & set(" =*?[]{}$`\\'\"<>|&;()!#%^~")


FUNCTIONS = " ".join(f'{name}() {{ say {name} "$@"; }};' for name in ("pytest", "npm", "mkdir"))
SAY = f'say() {{ printf "%s\\0" "$@"; }}; {FUNCTIONS}'


@pytest.mark.skipif(BASH is None, reason="there is no bash to compare with")
@given(lines)
@examples(2_000, 60, suppress=[HealthCheck.function_scoped_fixture])
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
    assert done.stdout.split("\0")[:-1] == [*found.text.split(" ")[:-1], *found.names], done.stderr


@given(lines, lines)
@examples(20_000)
def test_two_lines_with_one_prefix_differ_in_names_only(one: str, other: str) -> None:
    first, second = prefix_of(one), prefix_of(other)
    if first is not None and second is not None and first.text == second.text:
        words = [parse_tree(line).commands[0].words for line in (one, other)]
        assert words[0][: -len(first.names) or None] == words[1][: -len(second.names) or None]


@pytest.mark.skipif(not corpora.FOLDER.is_dir(), reason="the corpora are not part of the project")
def test_no_dangerous_command_is_like_one_that_anybody_would_approve() -> None:
    """Those that have a prefix only make folders: no harmful line hides behind a test or a check."""
    found = {prefix.text for case in corpora.shell_cases() if case.dangerous and (prefix := prefix_of(case.text))}
    assert all(text.startswith("mkdir") for text in found), found
