"""What is published: the wheel and the source distribution, built, looked into, installed and used."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.tables import table

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
UV = Path(sys.executable).with_name("uv")
ANSWERS = "approve,deny,edit,always"
BEHIND = {
    "tui": "import textual",
    "discord": "import discord",
    "postgres": "import psycopg",
    "mcp": "MCPToolset",
    "web": "from starlette",
    "oidc": "from authlib",
}
"""What the code behind an extra says; the others are model providers, which PydanticAI loads by the model's name."""


def run(*command: str | os.PathLike[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    made = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_", "REQUESTS_"))}
    return subprocess.run(
        command, cwd=cwd, env={**kept, **made, **environment}, capture_output=True, text=True, check=False
    )


def built(kind: str, source: Path, target: Path) -> Path:
    done = run(sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", target, cwd=source)
    assert done.returncode == 0, done.stderr
    [file] = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path, sources: Path, tmp_path: Path) -> None:
    tracked = run("git", "ls-files", "src/signoff", cwd=ROOT).stdout.split()
    ours = {name.removeprefix("src/") for name in tracked if (ROOT / name).exists()}
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith(f"signoff-{VERSION}.dist-info/")}
    assert "signoff/py.typed" in names
    assert ours <= names
    assert {name for name in names - ours if "__pycache__" in name or not name.startswith("signoff/")} == set()
    run("tar", "-xf", str(sources), cwd=tmp_path)
    again = built("wheel", tmp_path / f"signoff-{VERSION}", tmp_path / "again")
    assert set(zipfile.ZipFile(again).namelist()) == set(zipfile.ZipFile(wheel).namelist())


def test_the_metadata_is_complete(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    told = email.message_from_bytes(archive.read(f"signoff-{VERSION}.dist-info/METADATA"))
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("signoff", VERSION, "MIT")
    assert told["Requires-Python"] == ">=3.11"
    assert told["Summary"]
    assert told["Keywords"]
    assert told["Description-Content-Type"] == "text/markdown"
    assert "# signoff" in str(told.get_payload())
    assert f"signoff-{VERSION}.dist-info/licenses/LICENSE" in archive.namelist()
    declared = [line for line in told.get_all("Classifier", []) if re.search(r":: 3\.\d+$", line)]
    assert [line.rpartition(" ")[2] for line in declared] == ["3.11", "3.12", "3.13", "3.14"]
    assert "signoff = signoff.cli.main:main" in archive.read(f"signoff-{VERSION}.dist-info/entry_points.txt").decode()


@table("extra", sorted(PROJECT["optional-dependencies"]))
def test_something_is_behind_every_extra(extra: str) -> None:
    if extra in BEHIND:
        texts = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
        assert any(BEHIND[extra] in text for text in texts)
        assert any(f'"{extra}"' in text or f"[{extra}]" in text for text in texts), "an error names the extra"
    else:
        [needed] = PROJECT["optional-dependencies"][extra]
        assert needed.startswith(f"pydantic-ai-slim[{extra}]")


def used(python: Path | str, command: list[str], directory: Path, **environment: str) -> None:
    """The program as somebody starts it who has just installed it."""
    told = run(*command, "--version", cwd=directory, **environment)
    assert told.stdout == f"signoff, version {VERSION}\n", told.stderr
    done = run(*command, "demo", "--answers", ANSWERS, cwd=directory, HOME=str(directory), **environment)
    assert done.returncode == 0, done.stderr
    assert "signoff doctor" in done.stdout
    asked = "import signoff; print(signoff.__version__, signoff.__file__)"
    version, place = run(python, "-c", asked, cwd=directory, **environment).stdout.split(maxsplit=1)
    assert version == VERSION
    assert "/src/signoff" not in place


@pytest.mark.nightly
def test_the_wheel_runs_from_where_it_was_unpacked(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    start = f"import sys; sys.path.insert(0, {str(site)!r}); from signoff.cli.main import main; main()"
    used(sys.executable, [sys.executable, "-c", start], tmp_path, PYTHONPATH=str(site))


def pythons() -> list[Path]:
    """One Python of each version that is declared and is on this machine."""
    homes = [Path(one) for one in os.environ.get("PATH", "").split(os.pathsep)]
    homes += sorted(Path.home().glob(".pyenv/versions/*/bin"), reverse=True)
    found: list[Path] = []
    for minor in range(11, 15):
        for python in (home / f"python3.{minor}" for home in homes):
            if python.exists() and run(python, "-c", "import ssl, sqlite3", cwd=ROOT).returncode == 0:
                found.append(python)
                break
    return found


@pytest.mark.nightly  # downloads what it needs, once for each Python
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_pip_install_works_in_a_clean_environment_of_every_python(
    kind: str, wheel: Path, sources: Path, tmp_path: Path
) -> None:
    found = pythons()
    assert found
    for python in found if kind == "wheel" else found[:1]:
        home = tmp_path / python.name
        assert run(UV, "venv", "--quiet", "--python", python, home, cwd=tmp_path).returncode == 0
        installs = [UV, "pip", "install", "--quiet", "--python", home / "bin" / "python"]
        installed = run(*installs, wheel if kind == "wheel" else sources, cwd=tmp_path)
        if "Failed to fetch" in installed.stderr or "not found in the package registry" in installed.stderr:
            pytest.skip(f"nothing can be downloaded here: {installed.stderr.splitlines()[-1]}")
        assert installed.returncode == 0, installed.stderr
        used(home / "bin" / "python", [str(home / "bin" / "signoff")], tmp_path)
