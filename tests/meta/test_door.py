"""The public names: what is documented is importable, what was importable still is, and says where it is now."""

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


@table(
    ("package", "name", "today"),
    [
        ("signoff", "Answerer", "use signoff.Actor"),
        ("signoff", "ApprovalBlocked", "use signoff.errors.ApprovalBlocked"),
        ("signoff", "ApprovalDenied", "use signoff.errors.ApprovalDenied"),
        ("signoff", "ApprovalError", "use signoff.errors.ApprovalError"),
        ("signoff", "ApprovalUI", "use signoff.Approver"),
        ("signoff", "DiscordApprovals", "use signoff.channels.DiscordApprovals"),
        ("signoff", "idempotency_key", "use signoff.toolsets.idempotency_key"),
        ("signoff", "load_policy", "use signoff.workers.load_policy"),
        ("signoff", "open_store", "signoff.channels.open_inbox"),
        ("signoff", "resume_run", "use signoff.resume"),
        ("signoff.core.people", "Answerer", "use signoff.Actor"),
        ("signoff.ports", "ApprovalUI", "use signoff.Approver"),
        ("signoff.testing", "ScriptedUI", "use signoff.testing.ScriptedApprover"),
        ("signoff.workers.workshop", "Workshop", "use signoff.workers.Workers"),
        ("signoff.broker.post", "Route", "signoff.delivery.Route"),
    ],
)
def test_what_was_importable_still_is_and_says_where_it_is_now(package: str, name: str, today: str) -> None:
    with pytest.warns(DeprecationWarning, match=re.escape(today)) as told:
        former = getattr(import_module(package), name)
    assert told[0].filename == __file__, "the warning points at the line that uses the name"
    assert callable(former)


@pytest.mark.usefixtures("sync_loop")
def test_the_former_name_of_an_approver_is_taken_and_two_are_refused() -> None:
    from pydantic_ai import DeferredToolRequests

    nothing = DeferredToolRequests()
    with pytest.warns(DeprecationWarning, match="use approver=") as told:
        signoff.collect_approvals_sync(nothing, ui=lambda request: True)
    assert told[0].filename == __file__
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
