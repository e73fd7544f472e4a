"""A project's tests and checks are found in its own files, and nothing that changes more than reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from signoff.cli.coding_policy import coding_policy
from signoff.cli.own_checks import only_checks, own_checks, tools
from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy


def test_tools_that_the_project_names_are_found(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[flake8]\nmax-line-length = 100\n[isort]\n")
    (tmp_path / "requirements-dev.txt").write_text("# tools\npylint>=3\nblack==24.1 ; python_version > '3'\n-r x.txt\n")
    (tmp_path / "package.json").write_text(
        json.dumps({"devDependencies": {"eslint": "9", "@arethetypeswrong/cli": "1"}})
    )
    found = own_checks(tmp_path)

    assert {"flake8 *", "isort --check-only *", "pylint *", "black --check *", "python3 -m black --check *"} <= {
        *found.allowed
    }
    assert {"eslint *", "attw --pack", "npm test"} <= {*found.allowed}
    assert "eslint --fix" in found.rewrites
    assert not {"mypy *", "prettier --check *", "tox", "make test", "yarn lint"} & {*found.allowed}


@pytest.mark.parametrize(
    "text",
    [
        "[tool.black]\nline-length = 100\n",
        '[project]\nname = "x"\n[project.optional-dependencies]\ndev = ["Black ~= 24.1"]\n',
        '[dependency-groups]\ndev = [{include-group = "x"}, "black"]\n',
        '[tool.poetry.group.dev.dependencies]\nblack = "*"\n',
    ],
)
def test_pyproject_names_a_tool_in_several_ways(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert "black --check *" in own_checks(tmp_path).allowed


def test_scripts_environments_sessions_and_targets_are_found_by_their_names(tmp_path: Path) -> None:
    scripts = {
        "lint": "eslint .",
        "lint:fix": "eslint --fix .",
        "check": "tsc && node publish.js --write",
        "unit": "node x",
    }
    scripts |= {"prelint": "node x", "test:types": "tsd", "pretest:types": "rm -rf out", "dev": "vite", "a b test": "x"}
    (tmp_path / "package.json").write_text(json.dumps({"scripts": scripts}))
    (tmp_path / "yarn.lock").touch()
    (tmp_path / "tox.ini").write_text(
        "[tox]\nenvlist = py{311,312}-{unit,fix}, docs\n[testenv:types]\n[testenv:publish]\n"
    )
    nox = "import nox\n@nox.session(python=['3.11'])\ndef tests(s): ...\n@nox.session(name='lint-all')\ndef x(s): ...\n"
    (tmp_path / "noxfile.py").write_text(nox + "@nox.session\ndef release(s): ...\ndef test_no_session(): ...\n")
    (tmp_path / "Makefile").write_text(
        "all: build\nlint check-types:\n\truff\nrelease-check:\nCHECK := 1\ntest-fix: x\n"
    )
    found = own_checks(tmp_path).allowed

    assert {"npm run lint", "yarn lint", "yarn run lint", "npm run unit"} <= {*found}
    assert not [one for one in found if any(word in one for word in ("fix", "run check", "test:types", "dev", "a b"))]
    assert {"tox", "tox -e py311-unit", "tox run -e py312-unit", "tox -e types -- *"} <= {*found}
    assert {"nox -s tests", "nox --session lint-all -- *"} <= {*found}
    assert {"make lint", "make check-types"} <= {*found}
    assert not [
        one for one in found if any(word in one for word in ("docs", "publish", "release", "CHECK", "no_session"))
    ]


@pytest.mark.parametrize(
    "name", "test lint check:types test-3.13 py312 typecheck format:check check-format docs-doctests cov".split()
)
def test_names_that_say_check(name: str) -> None:
    assert only_checks(name)


@pytest.mark.parametrize(
    "name",
    "lint:fix fix:lint test:update format release-check? publish test-publish clean-tests dev start check;x".split(),
)
def test_names_that_say_more(name: str) -> None:
    assert not only_checks(name)


@pytest.mark.parametrize(
    "broken", ["{", "[]", "\0", "a" * 2_000_000, '{"scripts": {"test": 3, "lint": null}}', '{"scripts": []}']
)
@pytest.mark.parametrize("file", ["package.json", "pyproject.toml", "tox.ini", "noxfile.py", "Makefile", "setup.cfg"])
def test_what_cannot_be_read_names_nothing(tmp_path: Path, file: str, broken: str) -> None:
    (tmp_path / file).write_text(broken)
    bare = own_checks(tmp_path)
    (tmp_path / file).write_text("")
    assert bare == own_checks(tmp_path)


WRITING = {
    "eslint": "--fix -o --output-file --rulesdir --plugin --parser --resolve-plugins-relative-to -f --format",
    "prettier --check": "--write -w --plugin --config --find-config-path --stdin-filepath",
    "black --check": "--config",
    "isort --check-only": "--settings-path --sp --settings-file --overwrite-in-place",
    "flake8": "--config --append-config --output-file --tee --enable-extensions",
    "pylint": "--load-plugins --init-hook --rcfile --output",
    "pytest": "--junit-xml --cov-config",
    "coverage run -m pytest": "--junit-xml -c",
    "coverage html": "-d --directory --rcfile",
    "coverage xml": "-o --rcfile",
    "vitest run": "-u --update --outputFile --globalSetup --environment",
    "jest": "-u --updateSnapshot --clearCache --outputFile --setupFiles --globalSetup --transform --cacheDirectory -c",
    "mocha": "-O --reporter-option --reporter",
    "tsc --noEmit": "--plugins --generateTrace --generateCpuProfile",
    "knip": "--fix -c --config --preprocessor --reporter",
    "xo": "--fix --parser --plugin",
    "playwright test": "-u --update-snapshots --output",
    "doc8": "--config",
    "cspell": "-c --config --reporter",
    "tox": "-c --workdir -x --override",
    "make lint": "-f --file --eval SHELL=",
}


def test_no_option_that_writes_or_loads_code_is_covered(tmp_path: Path) -> None:
    names = sorted({name for tool in tools() for name in tool.names})
    (tmp_path / "package.json").write_text(json.dumps({"devDependencies": dict.fromkeys(names, "*")}))
    (tmp_path / "Makefile").write_text("lint:\n")
    (tmp_path / "tox.ini").touch()
    policy = Policy.from_rules(yaml.safe_load(coding_policy(tmp_path))["policy"])

    def runs(line: str) -> bool:
        call = Call(tool="Bash", args={"command": line}, labels=frozenset({"proc.exec"}))
        return policy.judge(call).effect is Effect.ALLOW

    assert [line for line in WRITING if not runs(line)] == []
    written = [f"{line} {option}{value}" for line, options in WRITING.items() for option in options.split()
               for value in ("=.git/hooks/x", " .git/hooks/x", " /tmp/x")]  # fmt: skip
    assert [line for line in written if runs(line)] == []
