"""What of the inbox and of the runs is listed: the page, the API and the commands' report list the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from click import Choice
from tests.server.web_desk import Page, WebDesk

from signoff.broker import new_id
from signoff.cli.runs_command import runs as runs_command
from signoff.config.settings import Person
from signoff.core.access import Permission
from signoff.core.call import Call
from signoff.core.card import safe_summary
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor, Delegation
from signoff.core.request import ApprovalRequest
from signoff.core.run import RunState, SavedRun
from signoff.core.verdict import Requirement
from signoff.server import api_runs, pages, waiting_list
from signoff.testing import ANA
from signoff.views.run_view import ALL, GOING, RUN_STATES

PEOPLE = {
    "ana": Person(name="ana", roles=frozenset({"ops"})),
    "ben": Person(name="ben", roles=frozenset({"lead"})),
    "dan": Person(name="dan", roles=frozenset({"finance"})),
}


@pytest.fixture
def desk() -> WebDesk:
    return WebDesk(people=PEOPLE)


def rows(page: Page) -> list[str]:
    return [one.attributes["data-id"] for one in page.all("li", class_="item")]


def api(desk: WebDesk, name: str, **query: Any) -> dict[str, Any]:
    answer = desk.client.get(f"/api/v1/{name}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def listed(desk: WebDesk, **query: Any) -> list[str]:
    """The requests on the page and on its part, and in the API: the same ones."""
    address = urlencode({"mine" if name == "mine" else "q": value for name, value in query.items()})
    found = rows(desk.get(f"/?{address}"))
    assert rows(desk.get(f"/fragments/list?{address}")) == found
    search = {"mine": "true"} if "mine" in query else {}
    search |= {"q": query["search"]} if "search" in query else {}
    assert [one["id"] for one in api(desk, "requests", **search)["requests"]] == found
    return found


# --- the inbox ---


def test_for_me_is_what_the_reader_may_answer_and_nobody_else_has(desk: WebDesk) -> None:
    open_to_all = desk.ask(tool="read")
    ops = desk.ask(tool="push", need=Requirement(role="ops"))
    desk.ask(tool="refund", need=Requirement(role="finance"))
    taken = desk.ask(tool="wait")
    desk.do(desk.office.broker.assign(taken, "ben", by=Actor(name="ben")))
    voted = desk.ask(tool="deploy", need=Requirement(role="ops", quorum=2))
    desk.do(desk.office.broker.answer(voted, ApprovalDecision(approved=True), by=ANA))
    assert len(listed(desk)) == 5
    assert listed(desk, mine="1") == [open_to_all, ops]


def test_for_me_counts_those_for_whom_the_reader_stands_in(desk: WebDesk) -> None:
    release = desk.ask(tool="release", need=Requirement(role="lead"))
    now = desk.office.broker.clock.now()
    made = Delegation(absent="ben", deputy="ana", until=now + timedelta(days=1), since=now, by="ben")
    assert listed(desk, mine="1") == []
    desk.do(desk.office.broker.people.delegate(made))
    assert listed(desk, mine="1") == [release]


def test_a_search_looks_at_titles_tools_and_workers_in_any_case(desk: WebDesk) -> None:
    mail = desk.ask(tool="send_mail", args={"to": "Zoe"})
    other = desk.ask(tool="refund", args={"to": "Yan"}, need=Requirement(role="ops"))
    assert listed(desk, search="zoe") == [mail]
    assert listed(desk, search="REFUND") == [other]
    assert listed(desk, search="nothing of it") == []
    assert listed(desk, search="refund", mine="1") == [other]
    page = desk.get("/?q=refund&mine=1")
    [box] = page.all("input", id="q")
    assert box.attributes["value"] == "refund"
    [form] = page.all("form", role="search")
    assert (form.attributes["method"], form.attributes["action"]) == ("get", "/")  # no script is needed
    assert [one.attributes["value"] for one in page.all("input", name="mine")] == ["1"]
    assert page.all("a", class_="row")[0].attributes["href"] == f"/requests/{other}?mine=1&q=refund"
    assert page.all("p", class_="back")[0] and page.all("a", href="/?mine=1&q=refund")


def test_nothing_that_matches_is_said_with_a_way_to_all(desk: WebDesk) -> None:
    desk.ask(need=Requirement(role="finance"))
    for query in ("mine=1", "q=zzz"):
        page = desk.get(f"/?{query}")
        assert "Nothing that matches is waiting." in page.words
        assert "signoff demo" not in page.words
    assert "No pending requests" in WebDesk().get("/").words


def test_rows_of_a_run_with_the_same_title_say_what_differs(desk: WebDesk) -> None:
    deep, long = "/".join(["directory"] * 12), "x" * 30_000

    def write(path: str, content: str, **more: Any) -> str:
        args = {"path": path, "content": content, **more}
        call = Call(tool="write_file", args=args, call_id=new_id(), worker=("clerk",))
        asked = ApprovalRequest(
            tool_call_id=call.call_id, tool_name=call.tool, args=args, call=call, run="batch", summary=f"Write {path}"
        )
        return desk.do(desk.office.broker.open([asked.changed_to(title=safe_summary(asked))]))[0].id

    ids = [
        *(write("a.txt", f"{'the same ' * 9}{end}", token=f"sk-{9 * end}") for end in ("one", "two")),
        *(write(f"{deep}/{name}.txt", "same") for name in ("left", "right")),
        *(write("big.txt", long + end) for end in ("", "y")),
        write("b.txt", "alone"),
    ]
    apart = [f"content: …me the same {end}" for end in ("one", "two")]
    apart += [f"path: …y/directory/{name}.txt" for name in ("left", "right")]
    apart += [f"content: {length:,} characters" for length in (30_000, 30_001)]

    def told(path: str) -> dict[str, str]:
        titles = re.findall(
            r'data-row="(\w+)".*?<span class="row-title">(.*?)</span>', desk.get(path).source, re.DOTALL
        )
        return {one: " ".join(re.sub(r"<[^>]*>", "", title).split()) for one, title in titles}

    whole = told("/")
    for one, words in zip(ids, [*apart, "Write b.txt"], strict=True):
        assert whole[one].endswith(words), whole[one]
    assert "sk-" not in str(whole)
    fresh = write("b.txt", "not alone")
    rows = told(f"/fragments/rows?id={fresh}")
    assert {one: words.rpartition("content: ")[2] for one, words in rows.items()} == {
        ids[-1]: "alone",
        fresh: "not alone",
    }


def test_a_changed_row_that_the_filter_leaves_out_is_marked(desk: WebDesk) -> None:
    mine, other = desk.ask(tool="push"), desk.ask(tool="refund", need=Requirement(role="finance"))
    gone = desk.ask(tool="old")
    desk.do(desk.office.broker.answer(gone, ApprovalDecision(approved=False), by=ANA))
    query = "&".join(f"id={one}" for one in (mine, other, gone))

    def marked(more: str) -> dict[str, bool]:
        page = desk.get(f"/fragments/rows?{query}{more}")
        return {one.attributes["data-id"]: "data-other" in one.attributes for one in page.all("li", class_="item")}

    assert marked("") == {mine: False, other: False}
    assert marked("&mine=1") == {mine: False, other: True}
    assert marked("&q=refund") == {mine: True, other: False}


def test_a_page_of_the_list_is_bounded_and_the_next_is_a_link(desk: WebDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_list, "MOST_LOOKED_AT", 1)
    others = [desk.ask(tool="refund", need=Requirement(role="finance")) for _ in range(210)]
    mine = desk.ask(tool="push")
    page = desk.get("/?mine=1")
    assert rows(page) == []
    assert "There are more requests to look through." in page.words
    [more] = page.all("a", data_do="more")
    assert more.attributes["href"].startswith("/?mine=1&after=")
    assert rows(desk.get(more.attributes["href"])) == [mine]
    first = desk.get("/?q=refund")
    assert rows(first) == others[: waiting_list.PART]
    [more] = first.all("a", data_do="more")
    assert rows(desk.get(more.attributes["href"])) == others[waiting_list.PART : 2 * waiting_list.PART]


# --- runs ---

DONE, FAILED = RunState.DONE, RunState.FAILED


def begin(desk: WebDesk, run_id: str, end: RunState | None = None, **how: Any) -> None:
    async def work() -> None:
        run = await desk.office.broker.runs.begin(SavedRun(id=run_id, **how), put_down=end is None)
        if end is not None:
            await desk.office.broker.runs.end(run_id, run.epoch, end, "order 4711 is missing")

    desk.do(work())


@pytest.fixture
def runs(desk: WebDesk) -> WebDesk:
    begin(desk, "one", agent="worker:triage", prompt="Sort the issues", requester="ana")
    begin(desk, "two", agent="worker:triage", prompt="Refund order 12", requester="dan", end=DONE)
    begin(desk, "three", name="shop", prompt="Look at the shop", end=FAILED)
    begin(desk, "four", agent="app:clerk", prompt="Write to Zoe")
    return desk


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"state": ALL}, ["four", "three", "two", "one"]),
        ({"state": GOING}, ["four", "one"]),
        ({"state": "ready"}, ["four", "one"]),
        ({"state": "waiting"}, []),
        ({"state": "done"}, ["two"]),
        ({"state": "failed"}, ["three"]),
        ({"state": "damaged"}, []),
        ({"state": ALL, "agent": "triage"}, ["two", "one"]),
        ({"state": ALL, "agent": "worker:triage"}, ["two", "one"]),
        ({"state": ALL, "agent": "shop"}, ["three"]),
        ({"state": ALL, "agent": "tri"}, []),
        ({"state": ALL, "search": "ORDER"}, ["three", "two"]),
        ({"state": ALL, "search": "dan"}, ["two"]),
        ({"state": ALL, "search": "fou"}, ["four"]),
        ({"state": "done", "agent": "triage", "search": "refund"}, ["two"]),
    ],
)
def test_runs_are_filtered_alike_on_every_face(runs: WebDesk, query: dict[str, str], found: Sequence[str]) -> None:
    answer = runs.client.get("/api/v1/runs", params=query).json()
    assert [one["id"] for one in answer["runs"]] == list(found)
    address = urlencode({"q" if name == "search" else name: value for name, value in query.items()})
    page = runs.get(f"/runs?{address}")
    assert [one.attributes["href"] for one in page.all("a") if one.attributes["href"].startswith("/runs/")] == [
        f"/runs/{one}" for one in found
    ]
    assert ("No such runs" in page.words) == (not found)


def test_the_form_of_the_runs_keeps_what_was_chosen(runs: WebDesk) -> None:
    page = runs.get("/runs?state=failed&agent=shop&q=order")
    assert [one.attributes["value"] for one in page.all("option") if "selected" in one.attributes] == ["failed"]
    assert {one.attributes["id"]: one.attributes["value"] for one in page.all("input")} == {
        "q": "order",
        "agent": "shop",
    }
    unknown = runs.get("/runs?state=nonsense")
    assert len(unknown.all("code")) == 4


def test_a_page_of_runs_is_bounded_and_older_ones_keep_the_filter(
    desk: WebDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_LOOKED_AT", 1)
    monkeypatch.setattr(api_runs, "MOST_LOOKED_AT", 1)
    for number in range(260):
        begin(desk, f"r{number}", agent="worker:rare" if number in (7, 5) else "worker:common")
    page = desk.get("/runs?agent=rare")
    assert "There are older runs to look through." in page.words
    [older] = [one.attributes["href"] for one in page.all("a", class_="button")]
    assert older == "/runs?agent=rare&before=r60"
    assert "/runs/r7" in [one.attributes["href"] for one in desk.get(older).all("a")]
    first = api(desk, "runs", agent="rare")
    assert (first["runs"], first["next"]) == ([], "r60")
    second = api(desk, "runs", agent="rare", cursor="r60")
    assert ([one["id"] for one in second["runs"]], second["next"]) == (["r7", "r5"], None)


def test_the_command_knows_the_states() -> None:
    [option] = [one for one in runs_command.params if one.name == "state"]
    assert isinstance(option.type, Choice)
    assert set(option.type.choices) == set(RUN_STATES) - {GOING, ALL}


def test_who_may_only_read_filters_too() -> None:
    desk = WebDesk(people=PEOPLE, permissions=frozenset({Permission.READ}))
    desk.ask(tool="push")
    assert len(listed(desk, search="push")) == 1
