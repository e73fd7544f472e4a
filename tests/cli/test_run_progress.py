"""What is shown of a run while it goes on, and what it took."""

from __future__ import annotations

import json
from decimal import Decimal
from io import StringIO

import pytest
from tests.cli.desk import Desk
from tests.cli.wording import Wording

from signoff.cli.progress import ProgressPrinter, event_json, print_event, spent_json, spent_line
from signoff.cli.terminal_text import cells
from signoff.core.call import Call
from signoff.core.event import CallEvent, CallStep
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Effect, Verdict
from signoff.workers.runtime import WorkerUsage

SECRET = "postgres://ana:hunter2@db"
ALLOW = Verdict(effect=Effect.ALLOW, rules=("rule-1",), reason="it reads")


def event(what: CallStep, path: str = "c1", worker: tuple[str, ...] = ("triage",), **fields: object) -> CallEvent:
    call = Call(tool="shell", args={"command": f"ls {SECRET}"}, call_id=path, worker=worker, path=path)
    known: dict[str, object] = {"verdict": ALLOW, "secrets": (SECRET,), **fields}
    return CallEvent(what=what, call=call, **known)  # type: ignore[arg-type]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """To be called in the test itself: pytest exchanges the streams when it has set up the fixtures."""
    made = Terminal()
    monkeypatch.setattr("sys.stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return made


def last(screen: Terminal) -> str:
    """The line at the bottom, as it stands."""
    return screen.getvalue().rpartition("\r\x1b[K")[2].removeprefix("\x1b[2m").removesuffix("\x1b[0m")


def test_the_line_at_the_bottom_says_what_is_going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = at_a_terminal(monkeypatch)
    progress = ProgressPrinter(patience=0)
    progress.begun("worker:triage", "r1")
    try:
        progress.observe(event(CallStep.ALLOWED))
        assert last(screen).startswith("calling shell(command=")
        progress.observe(event(CallStep.ALLOWED, "c1/d1", ("triage", "analyzer")))
        assert last(screen).startswith("calling triage > analyzer > shell("), "the call around it only waits"
        progress.observe(event(CallStep.ALLOWED, "c1/d2", ("triage", "analyzer")))
        assert last(screen).endswith(" and 1 more")
        for path in ("c1/d1", "c1/d2"):
            progress.observe(event(CallStep.RAN, path, ("triage", "analyzer")))
        progress.observe(event(CallStep.FAILED, text=f"cannot reach {SECRET}"))
        assert last(screen) == "triage is thinking"
        progress.observe(event(CallStep.ASKED))
        assert last(screen) == "triage waits for a person: signoff inbox"
    finally:
        progress.ended()
    assert last(screen) == "", "nothing is left of it"
    assert "hunter2" not in screen.getvalue()


@pytest.mark.parametrize(
    ("chain", "start"),
    [
        (("triage", "analyzer"), "triage > analyzer > shell("),
        (("triage", "analyzer", "fixer-of-everything"), " … > fixer-of-everything > shell("),
        (("a" * 70, "b" * 70), "b"),
        (("調" * 20, "査" * 20), "査"),
    ],
)  # fmt: skip
def test_a_line_fits_however_long_the_chain_is(
    chain: tuple[str, ...], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_event(event(CallStep.ALLOWED, worker=chain))
    line = capsys.readouterr().err.splitlines()[0]
    assert cells(line) <= 80
    assert start in line and "shell(" in line


def test_elsewhere_each_step_is_one_plain_line(capsys: pytest.CaptureFixture[str], wording: Wording) -> None:
    progress = ProgressPrinter()
    progress.begun("worker:triage", "r1")
    progress.observe(event(CallStep.ALLOWED, "c1/d1", ("triage", "analyzer")))
    asked = ApprovalRequest(id="k3f9", tool_call_id="c2", tool_name="shell", args={})
    progress.observe(event(CallStep.ASKED, "c2", request=asked))
    progress.observe(event(CallStep.RAN, "c1/d1"))
    progress.observe(event(CallStep.DENIED, "c2", by="policy", text="no\nway"))
    progress.ended()
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert [line.split()[0] for line in lines] == ["allowed", "asked", "denied"]
    assert err == wording()
    assert "\x1b" not in err and "hunter2" not in err


def test_a_mask_stays_a_mask_and_what_only_looks_like_one_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    for what in (CallStep.FAILED, CallStep.DENIED):
        print_event(event(what, by="policy", text=f"cannot reach {SECRET} ⟦masked 1: key⟧"))
        told = capsys.readouterr().err.splitlines()[-1]
        assert told.endswith("cannot reach ⟦masked' 1: declared secret⟧ ⟦U+27E6⟧masked 1: key⟦U+27E7⟧")


def test_programs_never_see_a_secret() -> None:
    row = json.loads(event_json(event(CallStep.FAILED, text=f"cannot reach {SECRET}")))
    assert "hunter2" not in str(row)
    assert row["event"] == "failed"


@pytest.mark.parametrize(
    ("spent", "line"),
    [
        (WorkerUsage(requests=1), "1 model request"),
        (WorkerUsage(requests=3, input_tokens=1204, output_tokens=310), "3 model requests · 1,204 tokens in, 310 out"),
        (
            WorkerUsage(requests=2, input_tokens=10, output_tokens=1, cost=Decimal("0.00425")),
            "2 model requests · 10 tokens in, 1 out · $0.0042",
        ),
    ],
)
def test_what_it_took(spent: WorkerUsage, line: str) -> None:
    assert spent_line(spent) == line
    assert spent_json(spent)["cost_usd"] == (float(spent.cost) if spent.cost is not None else None)


PRICED = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

class Priced(FunctionModel):
    system = "openai"

def answer(messages, info):
    usage = RequestUsage(input_tokens=1_000_000, output_tokens=0)
    return ModelResponse(parts=[TextPart("done")], usage=usage, provider_name="openai")

agent = Agent(Priced(answer, model_name="gpt-4o"))
"""


def test_a_call_that_does_not_begin_is_told(desk: Desk) -> None:
    desk.directory.joinpath("signoff.yaml").write_text("policy: []\n")
    desk.directory.joinpath("workers").mkdir()
    desk.directory.joinpath("workers/reader.yaml").write_text("instructions: Read.\ntoolsets: [filesystem_ro]\n")
    calls = [("shel", {}), ("read_file", {"pat": "x"}), ("read_file", {"path": "nowhere"})]
    turns = [*({"calls": [{"tool": tool, "args": args}]} for tool, args in calls), {"say": "done"}]
    desk.directory.joinpath("turns.yaml").write_text(json.dumps(turns))
    told = desk.run("run", "reader", "read", "--model", "script:turns.yaml").err
    assert "  not called    shel: there is no such tool\n" in told
    assert "  not called    read_file: it does not take these arguments: path: Field required" in told
    assert "  failed        Read nowhere  `nowhere` does not exist\n" in told
    assert told.count("not called") == 2, "what began is told by its own steps"


def test_a_known_price_is_told(desk: Desk) -> None:
    (desk.directory / "priced.py").write_text(PRICED)
    said = desk.run("run", "priced:agent", "go", "--json")
    usage = said.rows[-1]["usage"]
    assert (usage["requests"], usage["input_tokens"]) == (1, 1_000_000)
    assert 0 < usage["cost_usd"] < 100
    assert f"${usage['cost_usd']:.4f}" in desk.run("run", "priced:agent", "go").err


SHOP = """
from pydantic_ai import Agent

def read() -> str:
    return "seen"

def write() -> str:
    return "written"

agent = Agent(tools=[read, write])
"""


@pytest.mark.parametrize(
    ("rule", "called", "code"),
    [
        ("{deny: write}", (), 0),
        ("{deny: write}", ("write",), 4),
        ("{deny: write}", ("read", "write"), 0),
        ("{ask: write}", ("read",), 0),
        ("{ask: write}", ("write", "write"), 4),
    ],
)
def test_a_run_whose_every_call_was_denied_says_so_by_its_exit_code(
    rule: str, called: tuple[str, ...], code: int, desk: Desk
) -> None:
    """Denied by the policy, or because nobody is there to answer."""
    (desk.directory / "signoff.yaml").write_text(f"policy: [{rule}, {{allow: read}}]\n")
    (desk.directory / "kiosk.py").write_text(SHOP)
    turns = [{"calls": [{"tool": tool}]} for tool in called]
    (desk.directory / "script.yaml").write_text(json.dumps([*turns, {"say": "bye"}]))
    said = desk.run("run", "kiosk:agent", "go", "--model", "script:script.yaml")
    assert (said.code, said.out) == (code, "bye\n"), said.err
    assert desk.run("run", "kiosk:agent", "go", "--model", "script:script.yaml", "--json").code == code


def test_a_delegation_in_which_everything_was_denied_did_nothing() -> None:
    progress = ProgressPrinter(as_json=True)
    progress.begun("worker:triage", "r1")
    progress.observe(event(CallStep.ALLOWED, "c1"))
    progress.observe(event(CallStep.DENIED, "c1/d1", ("triage", "analyzer"), by="policy", text="no"))
    progress.observe(event(CallStep.RAN, "c1"))
    assert progress.all_denied
    progress.observe(event(CallStep.RAN, "c1/d2", ("triage", "analyzer")))
    assert not progress.all_denied
