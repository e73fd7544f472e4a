"""docs/reference/project.md: its files load as printed, and every key is on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.tables import table

from signoff.channel_kinds import BUILT_IN, built_in
from signoff.config import load_settings, load_workers
from signoff.config.channel_entries import format_of
from signoff.config.settings import DEFAULTS, PLUGINS, PROJECT, person_format
from signoff.config.toolset_entries import TOOLSET
from signoff.config.worker_keys import DEFAULTS as WORKER_DEFAULTS
from signoff.config.worker_keys import LIMITS, RETRIES, WORKER
from signoff.policy.builtin import RULES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "project.md").read_text("utf-8")
FILES = dict(re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
MARKDOWN = re.findall(r"^```markdown\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_files_on_the_page_load_without_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("workers").mkdir()
    assert set(FILES) == {"signoff.yaml", "workers/triage.yaml"}
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("workers/analyzer.md").write_text(MARKDOWN[0])
    settings = load_settings("signoff.yaml")
    assert settings.warnings == ()
    workers = load_workers(settings)
    assert workers["triage"].limits.requests == 20
    assert workers["analyzer"].limits.requests == 50
    assert settings.toolsets["reports_db"].use == "mycompany.toolsets:DatabaseToolset"


@table(
    "key",
    [
        *PROJECT.keys,
        *person_format().keys,
        *PLUGINS.keys,
        *DEFAULTS.keys,
        *TOOLSET.keys,
        *(key for name in BUILT_IN for key in format_of(built_in(name)).keys),
        *BUILT_IN,
        *WORKER.keys,
        *LIMITS.keys,
        *RULES,
    ],
)
def test_every_key_is_on_the_page(key: str) -> None:
    assert f"`{key}`" in PAGE


def test_what_defaults_leave_out_is_on_the_page() -> None:
    sentence = re.search(r"`defaults.worker` every key of a worker but ([^.]*)\.", PAGE)
    assert sentence is not None
    assert set(re.findall(r"`([^`]+)`", sentence[1])) == WORKER.keys.keys() - WORKER_DEFAULTS.keys.keys()
    assert all(f"{key}: " in PAGE for key in RETRIES.keys)
