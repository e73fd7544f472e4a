"""A project's tests and checks are found in its own files, and nothing that changes more than reports."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from signoff.cli import own_checks as own_checks_module
from signoff.cli.coding_policy import coding_policy
from signoff.cli.own_checks import only_checks, own_checks, tools
from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.policy.places import runs_later


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


def test_who_writes_a_file_with_settings_of_a_check_is_asked() -> None:
    for name, keys in tomllib.loads(own_checks_module._TABLE.read_text(encoding="utf-8")).items():
        named = f"{keys['settings']} {keys.get('files', '')}".split()
        assert named, f"say which files with settings {name} reads"
        for file in {*named} - {"-"}:
            assert runs_later(file), (name, file)
            assert runs_later(f"packages/a/{file}"), (name, file)


@pytest.mark.parametrize(
    ("tool", "check", "rewriting"),
    [
        ("prettier", "prettier -c src", "prettier -c -w src"),
        ("prettier", "prettier --check .", "prettier --check -uw ."),
        ("prettier", "prettier -l .", "prettier -lw ."),
        ("oxlint", "oxlint src", "oxlint --fix-suggestions src"),
        ("eslint", "eslint src", "eslint --fix src"),
        ("jest", "jest src", "jest -u src"),
        ("@biomejs/biome", "biome check src", "biome check --write src"),
        ("@biomejs/biome", "biome lint .", "biome lint --apply-unsafe ."),
    ],
)
def test_a_check_that_rewrites_files_asks(tmp_path: Path, tool: str, check: str, rewriting: str) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"devDependencies": {tool: "1"}}))
    policy = Policy.from_rules(yaml.safe_load(coding_policy(tmp_path))["policy"], root=str(tmp_path))

    def effect(line: str) -> Effect:
        return policy.judge(Call(tool="Bash", args={"command": line}, labels=frozenset({"proc.exec"}))).effect

    assert effect(check) is Effect.ALLOW
    assert effect(rewriting) is Effect.ASK


@pytest.mark.parametrize(
    ("file", "text"), [("pyproject.toml", '[project]\nname = "My-x"\n'), ("setup.cfg", "[metadata]\nname = my_x\n")]
)
def test_a_python_project_says_its_version_and_lists_what_is_installed(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    (tmp_path / "pytest.ini").touch()
    assert not [one for one in own_checks(tmp_path).allowed if "my_x" in one]  # there is no such module
    (tmp_path / "src" / "my_x").mkdir(parents=True)
    found = {*own_checks(tmp_path).allowed}

    assert {"python -m my_x --version", "python3 -m pip list", "python -m pytest --version"} <= found
    assert not [one for one in found if one.endswith(("my_x *", "pip *", "pip list *"))]


@pytest.mark.parametrize(("file", "runner"), [("uv.lock", "uv run"), ("poetry.lock", "poetry run")])
def test_tools_are_also_run_by_what_manages_the_environment(tmp_path: Path, file: str, runner: str) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.black]\n")
    assert not [one for one in own_checks(tmp_path).allowed if " run " in one]
    (tmp_path / file).touch()
    assert {f"{runner} pytest *", f"{runner} black --check *"} <= {*own_checks(tmp_path).allowed}


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
    assert {"tox", "tox -e py311-unit", "tox run -e py312-unit", "tox -e types"} <= {*found}
    assert {"nox -s tests", "nox --session lint-all"} <= {*found}
    assert not [one for one in found if " -- " in one], "a session may run the first of these words as a program"
    assert {"make lint", "make check-types"} <= {*found}
    assert not [
        one for one in found if any(word in one for word in ("docs", "publish", "release", "CHECK", "no_session"))
    ]


def test_a_django_project_tests_by_its_own_program(tmp_path: Path) -> None:
    (tmp_path / "manage.py").touch()
    assert {"./manage.py test", "python manage.py check"} <= {*own_checks(tmp_path).allowed}


def test_a_check_by_its_name_that_does_more_is_not_found_in_another(tmp_path: Path) -> None:
    scripts = {"test": "jest && npm run check && npm run gone", "check": "tsc && git push"}
    (tmp_path / "package.json").write_text(json.dumps({"scripts": scripts}))
    assert {*own_checks(tmp_path).allowed} & {"jest", "npm run check", "npm run gone"} == {"jest"}


def test_what_checks_run_is_found_word_for_word(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(
        json.dumps(
            {
                "scripts": {
                    "test:cov": "nyc --exclude x npm test",
                    "test:db": "cross-env DB=mysql npm run lint:all",
                    "check": "CI=1 ninja-check -a && c8 report && echo ok",
                    "lint:all": "concurrently -c red 'npm:lint:js'",
                    "types": "tsc -p tsconfig.types.json",
                    "dev": "vitest --ui",
                }
            }
        )
    )
    (tmp_path / "tox.ini").write_text(
        "[testenv]\ncommands =\n    pytest --run-optional {posargs:tests}\n    ruff check --no-fix\n"
        "[testenv:lint]\ncommands = flake8p lib \\\n    test\n"
        "[testenv:random]\n[testenv:mine]\ncommands = python x.py\n"
    )
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tox.env.stress]\ncommands = [["pytest", "-x", {replace = "posargs", default = []}]]\n'
    )
    (tmp_path / "Makefile").write_text(
        "lint:\n\t@ruffer check\nunit: all\n\tpytest -n 2\n\trun $(X)\nall:\n\tmypy -p x\n"
    )
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "ci.yml").write_text(
        "jobs: {a: {steps: [{uses: x}, {run: 'pip install -e .\n\n  uv run pytest -q tests\n\n"
        "  pytest ${{ x }}\n\n  ./go'}]}}"
    )
    found = {*own_checks(tmp_path).allowed}

    assert {
        "nyc --exclude x npm test",
        "c8 report",
        "concurrently -c red npm:lint:js",
        "tsc -p tsconfig.types.json",
    } <= found
    assert {"flake8p lib test", "ruffer check", "pytest -n 2", "uv run pytest -q tests"} <= found
    assert {"tox -e random", "tox -e stress", "tox -e lint"} <= found
    assert "cross-env DB=mysql npm run lint:all" in found
    assert not [
        one
        for one in found
        if any(word in one for word in ("ninja", "--ui", "mypy -p", "mine", "go", "pip install", "$"))
    ]


@pytest.mark.parametrize(
    "line",
    ["ruff check -o signoff.yaml .", "ruff check -o .git/hooks/x .", "pytest --junitxml=signoff.yaml",
     "ruff check @r.txt", "ruff check --add-noqa .", "eslint --config evil.mjs .",
     "tsc --noEmit -p ../../x.json", "coverage html -d ../out",
     "mypy --python-executable ./evil .", "go vet -vettool=./evil", "cross-env PATH=bin eslint .",
     "cross-env NODE_OPTIONS=--require=./evil eslint .", "pytest --basetemp=/home/u"],
)  # fmt: skip
def test_of_a_workflow_only_what_a_last_star_covers_is_allowed(tmp_path: Path, line: str) -> None:
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    steps = json.dumps({"jobs": {"a": {"steps": [{"run": "eslint --quiet src"}, {"run": line}]}}})
    (tmp_path / ".github" / "workflows" / "a.yml").write_text(steps)
    assert own_checks(tmp_path).allowed == ("eslint --quiet src",)


def test_files_that_grow_without_end_are_read_to_a_limit(tmp_path: Path) -> None:
    """In full, these would take hours."""
    (tmp_path / "tox.ini").write_text(
        f"[tox]\nenvlist = py{'{1,2}' * 38}\n[testenv]\ncommands =\n" + "  pytest\n" * 3_000
    )
    rules = "".join(f"t{number}-test " for number in range(20_000))
    (tmp_path / "Makefile").write_text(f"{rules}:\n" + "\tpytest\n" * 20_000)
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    steps = f"x: &s {{run: {json.dumps('pytest')}}}\ny: &j {{steps: [{'*s, ' * 3_000}]}}\n"
    jobs = "".join(f"  j{number}: *j\n" for number in range(3_000))
    (tmp_path / ".github" / "workflows" / "a.yml").write_text(f"{steps}jobs:\n{jobs}")
    assert "make t1-test" in own_checks(tmp_path).allowed


@pytest.mark.parametrize(
    "script",
    [
        "node x.js",
        "bash -c id",
        "sh check.sh",
        "python check.py",
        "python -c 1",
        "./check",
        "tools/check",
        "npx evil",
        "pnpm dlx evil",
        "npm install && jest",
        "jest && pip install x",
        "cp a b",
        "curl https://x.example",
        "git push",
        "tee x",
        "cat .env",
        "jest -u",
        "eslint --fix",
        "jest $X",
        "jest *",
        "cd sub && jest",
        "mypy --install-types",
        "xargs x",
        "uv run bash x",
        "cross-env A=b node x.js",
        "cross-env A=b",
        "uv run",
        "jest '\"'",
        "jest 'a*'",
        "sudo jest",
        "make x",
        "jest {a}",
        "yes",
        "No",
        "jést",
        "npm run gone && jest *",
        "if",
        "",
        "signoff hook uninstall",
        "claude -p x",
        "busybox sh evil",
        "script -c evil",
        "unshare sh",
        "gh repo delete x --yes",
        "systemctl stop x",
        "aws s3 rb s3://x",
    ],
)
def test_what_a_script_runs_besides_is_not_allowed_by_itself(tmp_path: Path, script: str) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"scripts": {"test": script}}))
    bare = {"npm test", "npm run test", "npm run build", "npm run lint", "node --test"}
    assert {*own_checks(tmp_path).allowed} <= bare


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
    "biome check": "--write --fix --config-path --apply",
    "spin test": "-p --build-dir",
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


@pytest.mark.parametrize(
    ("settings", "runs"),
    [
        ({"tsconfig.json": "{}"}, True),
        ({"tsconfig.json": '{"compilerOptions": {"incremental": false}, "extends": "@tsconfig/node20"}'}, True),
        ({"tsconfig.json": '{"extends": "./base.json"}', "base.json": "{}"}, True),
        ({"tsconfig.json": '{\n  // "incremental": true,\n  "paths": {"@/*": ["src/*"]}}'}, True),
        ({"tsconfig.json": '{"incremental" /* x */ : true}'}, False),
        ({"tsconfig.json": '{ /*\n// */ "compilerOptions": {"incremental": true}\n}'}, False),
        ({"tsconfig.json": '{ // x\u2028"compilerOptions": {"incremental": true}\n}'}, False),
        ({"tsconfig.json": '{"a": "//", "compilerOptions": {"incremental": true}}'}, False),
        ({"tsconfig.json": '{"a": "/*", "compilerOptions": {"incremental": true}}'}, False),
        (
            {
                "tsconfig.json": '{"extends" /**/ : "./base.json"}',
                "base.json": '{"compilerOptions": {"incremental": true}}',
            },
            False,
        ),
        (
            {"tsconfig.json": "{}", "packages/a/tsconfig.json": '{"compilerOptions": {"tsBuildInfoFile": "../x"}}'},
            False,
        ),
        ({"tsconfig.json": '{"compilerOptions": {"tsBuildInfoFile": "../x", "incremental": true}}'}, False),
        ({"tsconfig.json": '{"compilerOptions": {"composite": true, "outDir": "../x"}}'}, False),
        ({"tsconfig.json": r'{"compilerOptions": {"ts\u0042uildInfoFile": "../x"}}'}, False),
        ({"tsconfig.json": '{"extends": "./base"}', "base.json": '{"compilerOptions": {"incremental": true}}'}, False),
        ({"tsconfig.json": '{"extends": ["./a", "./b"]}', "a.json": "{}", "b.json": '{"extends": "../c.json"}'}, False),
        (
            {
                "tsconfig.json": '{"extends": "kit"}',
                "node_modules/kit/tsconfig.json": '{"compilerOptions": {"incremental": true}}',
            },
            False,
        ),
        ({"tsconfig.json": "{}", "tsconfig.types.json": '{"compilerOptions": {"incremental": true}}'}, False),
    ],
)
def test_a_compiler_whose_settings_name_an_output_is_no_check(
    tmp_path: Path, settings: dict[str, str], runs: bool
) -> None:
    for name, text in settings.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "package.json").write_text(
        '{"scripts": {"lint": "tsc --noEmit"}, "devDependencies": {"typescript": "5"}}'
    )
    assert ("tsc --noEmit *" in own_checks(tmp_path).allowed) is runs
    assert any("tsc" in one for one in own_checks(tmp_path).allowed) is runs
