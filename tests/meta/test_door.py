"""The public names: what is documented is importable."""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from pathlib import Path

import pytest
from tests.tables import table

import signoff

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "signoff",
    "signoff.errors",
    "signoff.channels",
    "signoff.server",
    "signoff.toolsets",
    "signoff.workers",
    "signoff.testing",
)
_IMPORT = re.compile(r"^\s*(?:>>> )?from (signoff[\w.]*) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)


@table("package", PACKAGES)
def test_every_public_name_can_be_imported(package: str) -> None:
    module = import_module(package)
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__) > (5 if package != "signoff.server" else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in module.__all__:
            assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


@pytest.mark.usefixtures("sync_loop")
def test_an_approver_has_its_names_of_deferred_tools_too() -> None:
    from pydantic_ai import DeferredToolRequests

    assert signoff.ApprovalUI is signoff.Approver
    nothing = DeferredToolRequests()
    assert not signoff.collect_approvals_sync(nothing, ui=lambda request: True).approvals
    with pytest.raises(signoff.SignoffError, match="both given"):
        signoff.collect_approvals_sync(nothing, lambda request: True, ui=lambda request: True)


def test_pages_and_examples_import_public_names_only() -> None:
    public = {name: set(import_module(name).__all__) for name in PACKAGES}
    files = [
        ROOT / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.py"),
        *ROOT.glob("examples/**/*.md"),
    ]
    private: list[str] = []
    count = 0
    for file in files:
        if {"adr", "internals"} & set(file.parts):
            continue
        for module, several, one in _IMPORT.findall(file.read_text()):
            for name in (several or one).replace("\n", ",").split(","):
                word = name.partition("#")[0].strip().split(" as ")[0]
                count += 1
                if word and word not in public.get(module, ()) and not module.startswith("signoff.compat"):
                    private.append(f"{file.relative_to(ROOT)}: {module}.{word}")
    assert count > 50
    assert private == []
