"""The pages of the web inbox, as text: whole, safe, and with a word for everything."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from tests.server.web_desk import Page, WebDesk

from signoff.config.settings import Person
from signoff.core.access import Permission
from signoff.core.call import Call
from signoff.core.comment import CommentKind
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import PastCall, RequestContext
from signoff.core.run import SavedRun
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.server import page_words
from signoff.server.pages import PAGES, STATIC
from signoff.testing.office import BEN
from signoff.views.run_view import RUN_STATES

ANA_ON_FILE = Person(name="ana", roles=frozenset({"ops"}))
BEN_ON_FILE = Person(name="ben", roles=frozenset({"ops", "boss"}))
TAGS = frozenset(
    "html head meta title link script body a header main nav p span strong button noscript dialog h1 h2 h3 h4 dl div "
    "dt dd form section article bdi time ul ol li label input textarea select option details summary pre code mark "
    "blockquote q kbd datalist fieldset legend ins del table thead tbody tr th td svg rect line text title".split()
)
"""What our own templates use. Nothing else may come out of them, whatever goes in."""


def hostile(name: str) -> str:
    """A text that would do something in a page that trusts it, and can be told from others."""
    return (
        f"[{name}]\"'><img src=x onerror=alert(1)><script>alert(2)</script></bdi></pre>&lt;b&gt;\u202e\u200b{{{{7*7}}}}"
    )


FIELDS = (
    "tool worker toolset arg value key reason rule error message requester prompt words past changed problem preview "
    "detail note role title session directory"
).split()


async def ask_hostile(desk: WebDesk, **fields: Any) -> ApprovalRequest:
    """A request with such a text in every field that a model, a tool, a rule or a person has a hand in."""
    args = {
        hostile("arg"): hostile("value"),
        "nested": {hostile("key"): [hostile("value")]},
        "long": hostile("long") * 20,
    }
    requirement = Requirement(
        message=hostile("message"), timeout=timedelta(hours=1), on_timeout=OnTimeout.DENY, irreversible=True
    )
    asked = ApprovalRequest(
        tool_call_id="c1",
        tool_name=hostile("tool"),
        args=args,
        metadata={
            "diff": f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{hostile('preview')}\n+{hostile('preview')}",
            "summary": hostile("title"),
            "note": hostile("note"),
            hostile("detail"): hostile("detail"),
        },
        call=Call(
            tool=hostile("tool"),
            args=args,
            worker=(hostile("worker"),),
            toolset=hostile("toolset"),
            run_id="r",
            call_id="c1",
        ),
        verdict=Verdict(
            effect=Effect.ASK,
            rules=(hostile("rule"),),
            reason=hostile("reason"),
            requirement=requirement,
            errors=(hostile("error"),),
        ),
        schema={
            "type": "object",
            "properties": {
                hostile("arg"): {"type": "string", "description": hostile("about")},
                "flag": {"enum": [hostile("choice")]},
            },
        },
        changed=(hostile("changed"),),
        problem=hostile("problem"),
        requester=hostile("requester"),
        run="run-1",
        context=RequestContext(
            prompt=hostile("prompt"),
            words=hostile("words"),
            recent=(PastCall(summary=hostile("past"), outcome="success"),),
            session=hostile("session"),
            directory=hostile("directory"),
        ),
        **fields,
    )
    await desk.office.broker.runs.begin(
        SavedRun(id="run-1", prompt=hostile("prompt"), requester=hostile("requester"), agent=hostile("agent"))
    )
    [opened] = await desk.office.broker.open([asked])
    return opened


def check_safe(page: Page) -> None:
    """Nothing in it is more than text, and nothing is hidden."""
    assert {one.tag for one in page.elements} <= TAGS
    for one in page.elements:
        for name, value in one.attributes.items():
            assert not name.startswith("on"), (one.tag, name)
            assert name != "style"
            assert not value.lower().lstrip().startswith("javascript:")
        if one.tag == "script":
            assert one.attributes["src"].startswith("/static/inbox.js")
            assert one.attributes["type"] == "module"
    assert not [
        text for text, around in page.texts if around and around[-1].tag in ("script", "style") and text.strip()
    ]
    assert "\u202e" not in page.source
    assert "\u200b" not in page.source
    check_spaced(page)


_INLINE = "bdi|time|strong|code|span|a|q"
_TOUCHING = re.compile(
    rf"</(?:{_INLINE})><(?:{_INLINE}|button|label)\b[^>]*>|</(?:{_INLINE})>\w|\w<(?:bdi|time|strong|code|q)\b"
)


def check_spaced(page: Page) -> None:
    """Neighbours on a line do not touch: `by ana` and a date are not read as one word."""
    lines = re.sub(
        r"(?s)<pre\b.*?</pre>|<script\b.*?</script>|<title>.*?</title>|<span class=.hidden.>.*?</span>", "", page.source
    )
    assert [lines[max(0, one.start() - 60) : one.end() + 60] for one in _TOUCHING.finditer(lines)] == []


@pytest.fixture
def desk() -> WebDesk:
    return WebDesk(title=hostile("project"), people={})


def test_no_text_of_others_is_more_than_text(desk: WebDesk) -> None:
    broker = desk.office.broker

    async def prepare() -> str:
        request = await ask_hostile(desk)
        question = await broker.comments.add(
            request.id, hostile("question"), by=Actor(name=hostile("asker")), kind=CommentKind.QUESTION
        )
        await broker.comments.add(request.id, hostile("answer"), by=BEN, kind=CommentKind.ANSWER, answers=question.id)
        await broker.assign(request.id, hostile("assigned"), by=BEN)
        return request.id

    request_id = desk.do(prepare())
    card = desk.get(f"/requests/{request_id}")
    for name in (*FIELDS, "question", "asker", "answer", "assigned", "project"):
        if name != "role":
            assert f"[{name}]" in card.words, f"{name} is not on the page"
    assert "{{7*7}}" in card.words  # no template of ours is made of it
    pages = [card, *(desk.get(path.format(request_id=request_id, run_id="run-1")) for path, _, _ in PAGES)]
    selection = desk.get(f"/fragments/selection?id={request_id}")

    async def settle() -> None:
        await broker.assign(request_id, "", by=BEN)
        await broker.answer(
            request_id, ApprovalDecision(approved=True, note=hostile("note")), by=Actor(name=hostile("by"))
        )
        await broker.claim(request_id)
        broker.finish(request_id, error=hostile("failure"))
        await desk.office.store.flush()

    desk.do(settle())
    after = [desk.get(path.format(request_id=request_id, run_id="run-1")) for path, _, _ in PAGES]
    settled = desk.get(f"/requests/{request_id}")
    assert "[failure]" in settled.words
    assert "[by]" in settled.words
    assert "[title]" in desk.get("/history").words
    for page in (*pages, selection, *after, settled):
        check_safe(page)


def test_every_text_of_others_is_kept_apart_from_the_direction_of_ours(desk: WebDesk) -> None:
    request = desk.do(ask_hostile(desk))
    for path in (f"/requests/{request.id}", "/runs", "/runs/run-1", f"/fragments/selection?id={request.id}"):
        page = desk.get(path)
        for text, around in page.texts:
            tags = {one.tag for one in around}
            if "[" in text and "alert" in text:
                assert (
                    tags & {"bdi", "title", "textarea", "option"} or around[-1].attributes.get("class") == "sr-only"
                ), (path, text[:80])


def test_pages_load_nothing_but_our_own_files(desk: WebDesk) -> None:
    desk.do(ask_hostile(desk))
    for path in ("/", "/runs", "/history", "/insights", "/settings"):
        answer = desk.client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        for one in Page(answer.text).elements:
            for name in ("src", "href"):
                assert not one.attributes.get(name, "/").startswith(("http:", "https:", "//", "data:"))
    script = desk.client.get("/static/inbox.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "http://" not in script.text
    assert "https://" not in script.text
    assert "eval(" not in script.text
    for name in ("../pages.py", "..%2Fpages.py", "%2e%2e/pages.py", "pages.py", "", "inbox.css/../../pages.py"):
        assert desk.client.get(f"/static/{name}").status_code == 404
    mark = script.headers["etag"]
    assert desk.client.get("/static/inbox.js", headers={"if-none-match": mark}).status_code == 304


def test_whoever_is_not_signed_in_is_sent_to_do_so_and_comes_back() -> None:
    desk = WebDesk(actor=None)
    answer = desk.client.get("/requests/abc?make=rule")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=/requests/abc%3Fmake%3Drule"
    assert desk.client.get("/fragments/list").status_code == 401
    other = WebDesk(permissions=frozenset({Permission.ANSWER}))
    assert other.client.get("/").status_code == 403


def test_what_is_not_there_is_said_on_a_page() -> None:
    desk = WebDesk()
    for path in ("/requests/nothing", "/runs/nothing", "/fragments/requests/nothing"):
        answer = desk.client.get(path)
        assert answer.status_code == 404
        check_safe(Page(answer.text))
        assert "content-security-policy" in answer.headers


def test_a_path_that_nothing_is_at_is_a_page_and_below_the_api_a_problem() -> None:
    desk = WebDesk()
    answer = desk.client.get("/no/such")
    assert answer.status_code == 404
    assert "There is no such page." in Page(answer.text).words
    check_safe(Page(answer.text))
    assert desk.client.get("/api/v1/no/such").json()["type"] == "urn:signoff:not-found"


def test_a_long_call_is_locked_until_it_was_read() -> None:
    desk = WebDesk()
    request_id = desk.ask(args={"to": "bo@example.com", "subject": "x " * 500, "copies": 1})
    page = desk.get(f"/requests/{request_id}")
    assert page.all("button", data_do="approve")[0].attributes["aria-disabled"] == "true"
    assert "aria-disabled" not in page.all("button", data_do="deny")[0].attributes
    assert "you cannot approve what you have not read" in page.words
    assert [one for one in page.all("details") if "data-must-read" in one.attributes]
    assert "x x x" in page.words  # whole, though folded
    desk.do(desk.state.inbox.opened(request_id, desk.actor or BEN))
    page = desk.get(f"/requests/{request_id}")
    assert "aria-disabled" not in page.all("button", data_do="approve")[0].attributes


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (
            {"need": Requirement(role="boss")},
            "ana does not have the role boss, and this needs somebody with the role boss",
        ),
        ({"need": Requirement(role="ops", quorum=2)}, ""),
    ],
)
def test_approve_is_there_with_the_reason_why_it_is_locked(how: dict[str, Any], why: str) -> None:
    desk = WebDesk(people={"ana": ANA_ON_FILE, "ben": BEN_ON_FILE})
    request_id = desk.ask(**how)
    page = desk.get(f"/requests/{request_id}")
    button = page.all("button", data_do="approve")[0]
    assert ("aria-disabled" in button.attributes) is bool(why)
    assert why in page.words
    if not why:
        assert "1 more person has to approve" in page.words


def test_who_may_only_look_sees_no_way_to_answer() -> None:
    desk = WebDesk(permissions=frozenset({Permission.READ}))
    request_id = desk.ask()
    page = desk.get(f"/requests/{request_id}")
    for name in ("approve", "deny"):
        assert page.all("button", data_do=name)[0].attributes["aria-disabled"] == "true"
    assert "You can read this, but you do not have permission to answer." in page.words
    assert not page.all("form", data_form="comment")


def test_what_cannot_be_undone_is_held_and_left_out_of_many() -> None:
    desk = WebDesk()
    request_id = desk.ask(need=Requirement(irreversible=True))
    other_id = desk.ask(args={"to": "cy@example.com", "subject": "x", "copies": 1})
    page = desk.get(f"/requests/{request_id}")
    assert "hold" in page.all("button", data_do="approve")[0].attributes["class"].split()
    assert "cannot be undone" in page.words
    assert (
        "hold" not in desk.get(f"/requests/{other_id}").all("button", data_do="approve")[0].attributes["class"].split()
    )
    several = desk.get(f"/fragments/selection?id={request_id}&id={other_id}")
    left_out = [one.attributes["data-request"] for one in several.all("li") if "data-no-approve" in one.attributes]
    assert left_out == [request_id]
    assert not [one for one in several.all("li") if "data-left-out" in one.attributes]  # it can be denied


def test_what_decided_about_a_command_or_sql_is_marked() -> None:
    desk = WebDesk()
    for tool, args, decided in (
        ("shell", {"command": "ls -l && rm -rf build"}, "rm -rf build"),
        ("db", {"sql": "select 1; DELETE from t"}, "DELETE"),
    ):
        page = desk.get(f"/requests/{desk.ask(tool=tool, args=args)}")
        marked = [text for text, around in page.texts if any(one.tag == "mark" for one in around)]
        assert decided in marked
        assert "Marked because:" in page.words
    page = desk.get(f"/requests/{desk.ask(tool='shell', args={'command': 'ls -l'})}")
    assert not page.all("mark")


def test_the_list_is_grouped_by_run_and_drawn_in_parts() -> None:
    desk = WebDesk()
    desk.do(desk.office.ask(count=250))
    first = desk.get("/")
    rows = [one.attributes["data-row"] for one in first.all("a", class_="row")]
    assert len(rows) == 100
    assert "(250) Inbox" in first.words
    assert "/favicon.svg?n=250" in first.source
    after = next(one.attributes["data-next"] for one in first.elements if "data-next" in one.attributes)
    assert first.all("li", class_="item")[-1].attributes["data-place"] == after  # the script goes on after a row
    seen = list(rows)
    while after:
        part = desk.get(f"/fragments/list?after={after}")
        seen += [one.attributes["data-row"] for one in part.all("a", class_="row")]
        after = next(one.attributes["data-next"] for one in part.elements if "data-next" in one.attributes)
    assert len(seen) == len(set(seen)) == 250


def test_calls_of_coding_agents_are_grouped_by_session() -> None:
    desk = WebDesk()

    numbers = count()

    async def ask(session: str, directory: str) -> None:
        context = RequestContext(session=session, directory=directory, prompt="Fix it", words="so that it works")
        call = Call(tool="Bash", args={"command": "make"}, worker=("claude-code",), call_id=str(next(numbers)))
        made = ApprovalRequest(
            tool_call_id=call.call_id, tool_name="Bash", args=call.args, call=call, context=context, requester="ana"
        )
        await desk.office.broker.open([made])

    first, second = "81f90007-6e4e-4231-8056-13af86f687e4", "81f90007-6e4e-4231-8056-13af86f687e5"
    for session, directory in ((first, "/w/shop"), (second, "/w/api"), (first, "/w/shop")):
        desk.do(ask(session, directory))
    page = desk.get("/")
    headings = [one.attributes["data-run"] for one in page.all("section", class_="group")]
    assert len(headings) == len(set(headings)) == 2
    for text in ("…86f687e4 in /w/shop", "…86f687e5 in /w/api", "“Fix it” (for ana)"):
        assert text in page.words
    card = desk.get(page.all("a", class_="row")[0].attributes["href"])
    assert f"{first} in /w/shop" in card.words and "so that it works" in card.words


def test_nothing_waiting_teaches_how_to_begin() -> None:
    page = WebDesk().get("/")
    assert "No pending requests" in page.words
    assert "signoff demo" in page.words
    for path, words in (
        ("/runs", "No runs yet"),
        ("/history", "No decisions yet"),
        ("/insights", "No requests in this period"),
    ):
        assert words in WebDesk().get(path).words


def test_history_is_searched() -> None:
    desk = WebDesk()
    for subject in ("Lunch", "Dinner"):
        request_id = desk.ask(args={"to": "bo@example.com", "subject": subject, "copies": 1})
        desk.do(desk.office.broker.answer(request_id, ApprovalDecision(approved=False, note="not now"), by=BEN))
    page = desk.get("/history?q=dinner")
    assert "Dinner" in page.words
    assert "Lunch" not in page.words
    assert "not now" in page.words
    assert "No results" in desk.get("/history?q=breakfast").words


def test_a_cookie_chooses_the_colours_and_a_broken_one_nothing() -> None:
    desk = WebDesk()
    desk.ask()
    assert desk.get("/", cookie="signoff_theme=dark").all("html")[0].attributes["data-theme"] == "dark"
    broken = desk.get("/", cookie='signoff_theme="><script>; signoff_keys=../../x')
    assert broken.all("html")[0].attributes["data-theme"] == "system"
    check_safe(broken)


def test_there_is_a_word_for_everything_that_a_page_chooses_by_a_key() -> None:
    assert set(page_words.STATES) == {*State, "handed_over"}
    assert set(page_words.OUTCOMES) == {*page_words.STATES, "expired_few", "happened", "did_not"} - {"pending"}
    assert set(page_words.AT_DEADLINE) == {*OnTimeout}
    assert set(page_words.RUN_STATES) == {*RUN_STATES}


def test_the_script_has_every_text_that_it_says_and_no_other() -> None:
    script = (STATIC / "inbox.js").read_text("utf-8")
    table = script[script.index("const texts = {") : script.index("};")]
    there = set(re.findall(r"^  (\w+):", table, re.MULTILINE))
    counted = {f"{name}_{form}" for name in re.findall(r"\bcounted\(\"(\w+)\"", script) for form in ("one", "other")}
    assert there == {*re.findall(r"\btexts\.(\w+)", script), *counted}
