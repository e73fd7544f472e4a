"""Programs written for pydantic-ai-blocking-approval 0.9, and what each does with the real library.

`asked` names the callback and the tool of every question, in order; `ran` every tool that ran; `end` how the run ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset
from tests.gate.agents import calls

from signoff.testing import ScriptedModel

Made = Sequence[tuple[str, dict[str, Any]]]


@dataclass
class Ran:
    """What a program did."""

    asked: list[str] = field(default_factory=list[str])
    ran: list[str] = field(default_factory=list[str])
    end: str = ""


class Place:
    """What a program finds: the library's names, and tools and callbacks that write down what happens."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.seen = Ran()

    def tools(self, kind: type[FunctionToolset[Any]] = FunctionToolset) -> Any:
        def read(box: str = "in") -> str:
            self.seen.ran.append("read")
            return "one letter"

        def send(to: str = "ana") -> str:
            self.seen.ran.append("send")
            return "sent"

        def shell(command: str) -> str:
            self.seen.ran.append(command)
            return "ran"

        return kind([read, send, shell])

    def smart(self, decide: Callable[..., Any], *, is_async: bool = False) -> Any:
        """A toolset that decides for itself."""

        class Smart(FunctionToolset[Any]):
            def needs_approval(self, name: str, tool_args: dict[str, Any], ctx: Any, config: Any) -> Any:
                return decide(name, tool_args, config)

        class Later(FunctionToolset[Any]):
            async def needs_approval(self, name: str, tool_args: dict[str, Any], ctx: Any, config: Any) -> Any:
                return decide(name, tool_args, config)

        return self.tools(Later if is_async else Smart)

    def callback(self, who: str = "cb", *, approves: Any = True, remember: str = "none", is_async: bool = False) -> Any:
        def answer(request: Any) -> Any:
            self.seen.asked.append(f"{who}:{request.tool_name}")
            yes = approves(request) if callable(approves) else approves
            return self.library.ApprovalDecision(approved=yes, remember=remember) if yes in (True, False) else yes

        async def later(request: Any) -> Any:
            return answer(request)

        return later if is_async else answer

    def wrapped(self, inner: AbstractToolset[Any], config: Any = None, **callback: Any) -> Any:
        options = {} if config is None else {"config": config}
        return self.library.ApprovalToolset(inner=inner, approval_callback=self.callback(**callback), **options)

    # what needs_approval answers

    @property
    def asks(self) -> Any:
        return self.library.ApprovalResult.needs_approval()

    @property
    def approves(self) -> Any:
        return self.library.ApprovalResult.pre_approved()

    def consults(self, name: str, args: dict[str, Any], config: Any) -> Any:
        """Answer as the library's own example does."""
        base = self.library.needs_approval_from_config(name, config)
        if base.is_pre_approved:
            return base
        if args.get("command") == "shutdown":
            return self.library.ApprovalResult.blocked("forbidden")
        return self.approves if args.get("command") == "ls" else self.asks

    def only_safe(self, name: str, args: dict[str, Any], config: Any) -> Any:
        """Answer without a look at the config: it is free to."""
        return self.approves if args.get("command") == "ls" else self.asks


@dataclass(frozen=True)
class Program:
    """A toolset that somebody wrapped, the calls that a model makes, and what the real library makes of them."""

    make: Callable[[Place], AbstractToolset[Any]]
    made: Made
    real: Ran

    async def run(self, library: Any) -> Ran:
        place = Place(library)
        try:
            toolset = self.make(place)
            agent = Agent(ScriptedModel([*(calls(one) for one in self.made), {"say": "done"}]), toolsets=[toolset])
            place.seen.end = str((await agent.run("go")).output)
        except Exception as error:
            place.seen.end = type(error).__name__
        return place.seen


def did(asked: str, ran: str, end: str = "done") -> Ran:
    return Ran([one for one in asked.split(",") if one], [one for one in ran.split(",") if one], end)


READ, SEND = ("read", {}), ("send", {})
LS, RM, DOWN = (("shell", {"command": one}) for one in ("ls", "rm -rf /srv", "shutdown"))
FREE = {"shell": {"pre_approved": True}}
YES = {"pre_approved": True}

PROGRAMS: dict[str, Program] = {
    "nothing in the config": Program(lambda p: p.wrapped(p.tools()), [READ, SEND], did("cb:read,cb:send", "read,send")),
    "one tool in the config": Program(
        lambda p: p.wrapped(p.tools(), {"read": YES}), [READ, SEND], did("cb:send", "read,send")
    ),
    "the config says no": Program(
        lambda p: p.wrapped(p.tools(), {"read": {"pre_approved": False}}), [READ], did("cb:read", "read")
    ),
    "an empty entry": Program(lambda p: p.wrapped(p.tools(), {"read": {}}), [READ], did("cb:read", "read")),
    "a callback that says no": Program(
        lambda p: p.wrapped(p.tools(), approves=False), [READ, SEND], did("cb:read", "", "ApprovalDenied")
    ),
    "no to the second": Program(
        lambda p: p.wrapped(p.tools(), {"read": YES}, approves=False),
        [READ, SEND],
        did("cb:send", "read", "ApprovalDenied"),
    ),
    "an async callback": Program(lambda p: p.wrapped(p.tools(), is_async=True), [READ], did("cb:read", "read")),
    "an async no": Program(
        lambda p: p.wrapped(p.tools(), is_async=True, approves=False), [READ], did("cb:read", "", "ApprovalDenied")
    ),
    "a callback that returns a string": Program(
        lambda p: p.wrapped(p.tools(), approves=lambda r: "yes"), [READ], did("cb:read", "", "TypeError")
    ),
    "remember is the caller's to keep": Program(
        lambda p: p.wrapped(p.tools(), remember="session"), [READ, READ], did("cb:read,cb:read", "read,read")
    ),
    "asks though the config approves": Program(
        lambda p: p.wrapped(p.smart(p.only_safe), FREE), [LS, RM], did("cb:shell", "ls,rm -rf /srv")
    ),
    "asks though the config approves, and no": Program(
        lambda p: p.wrapped(p.smart(p.only_safe), FREE, approves=False),
        [LS, RM],
        did("cb:shell", "ls", "ApprovalDenied"),
    ),
    "asks later though the config approves": Program(
        lambda p: p.wrapped(p.smart(p.only_safe, is_async=True), FREE), [RM], did("cb:shell", "rm -rf /srv")
    ),
    "always asks": Program(
        lambda p: p.wrapped(p.smart(lambda *a: p.asks), {"read": YES}), [READ], did("cb:read", "read")
    ),
    "consults the config": Program(lambda p: p.wrapped(p.smart(p.consults), FREE), [RM], did("", "rm -rf /srv")),
    "consults a config that is empty": Program(
        lambda p: p.wrapped(p.smart(p.consults)), [LS, RM], did("cb:shell", "ls,rm -rf /srv")
    ),
    "blocks": Program(lambda p: p.wrapped(p.smart(p.consults)), [DOWN], did("", "", "ApprovalBlocked")),
    "blocks though the config approves": Program(
        lambda p: p.wrapped(p.smart(lambda *a: p.library.ApprovalResult.blocked("no")), FREE),
        [LS],
        did("", "", "ApprovalBlocked"),
    ),
    "approves what the config does not name": Program(
        lambda p: p.wrapped(p.smart(lambda *a: p.approves)), [READ, SEND], did("", "read,send")
    ),
    "raises in its check": Program(
        lambda p: p.wrapped(p.smart(lambda *a: 1 / 0), approves=False), [READ], did("", "", "ZeroDivisionError")
    ),
    "answers with a bool": Program(
        lambda p: p.wrapped(p.smart(lambda *a: "yes"), approves=False), [READ], did("", "", "TypeError")
    ),
    "answers None": Program(
        lambda p: p.wrapped(p.smart(lambda *a: None), FREE, approves=False), [READ], did("", "", "TypeError")
    ),
    "raises PermissionError": Program(
        lambda p: p.wrapped(p.smart(lambda *a: exec("raise PermissionError('no')")), FREE),
        [LS],
        did("", "", "PermissionError"),
    ),
    "around one that approves other tools": Program(
        lambda p: p.wrapped(p.wrapped(p.tools(), {"send": YES}, who="in"), {"read": YES}, who="out"),
        [READ, SEND],
        did("in:read,out:send", "read,send"),
    ),
    "around one that approves": Program(
        lambda p: p.wrapped(p.wrapped(p.tools(), {"read": YES}, who="in"), {}, who="out"),
        [READ, SEND],
        did("out:read,out:send,in:send", "read,send"),
    ),
    "around one that does not approve": Program(
        lambda p: p.wrapped(p.wrapped(p.tools(), {}, who="in"), {"read": YES}, who="out"),
        [READ],
        did("in:read", "read"),
    ),
    "around one whose callback says no": Program(
        lambda p: p.wrapped(p.wrapped(p.tools(), who="in", approves=False), who="out"),
        [READ],
        did("out:read,in:read", "", "ApprovalDenied"),
    ),
    "around one, and its own callback says no": Program(
        lambda p: p.wrapped(p.wrapped(p.tools(), who="in"), who="out", approves=False),
        [READ],
        did("out:read", "", "ApprovalDenied"),
    ),
    "two around one that consults": Program(
        lambda p: p.wrapped(p.wrapped(p.smart(p.consults), {}, who="in"), FREE, who="out"),
        [LS, RM],
        did("in:shell", "ls,rm -rf /srv"),
    ),
    "two around one that consults, the inner approves": Program(
        lambda p: p.wrapped(p.wrapped(p.smart(p.consults), FREE, who="in"), {}, who="out"),
        [RM],
        did("out:shell", "rm -rf /srv"),
    ),
    "two around one that asks": Program(
        lambda p: p.wrapped(p.wrapped(p.smart(p.only_safe), FREE, who="in"), FREE, who="out"),
        [LS, RM],
        did("out:shell,in:shell", "ls,rm -rf /srv"),
    ),
    "three": Program(
        lambda p: p.wrapped(
            p.wrapped(p.wrapped(p.tools(), {"read": YES}, who="c"), {"send": YES}, who="b"), {}, who="a"
        ),
        [READ, SEND],
        did("a:read,b:read,a:send,c:send", "read,send"),
    ),
    "two of one config": Program(
        lambda p: p.wrapped(p.wrapped(p.tools(), {"read": YES}, who="in"), {"read": YES}, who="out"),
        [READ, SEND],
        did("out:send,in:send", "read,send"),
    ),
    "inside a prefix": Program(
        lambda p: p.wrapped(p.tools(), {"read": YES}).prefixed("m"),
        [("m_read", {}), ("m_send", {})],
        did("cb:send", "read,send"),
    ),
    "around a prefix": Program(
        lambda p: p.wrapped(p.tools().prefixed("m"), {"m_read": YES}),
        [("m_read", {}), ("m_send", {})],
        did("cb:m_send", "read,send"),
    ),
    "around a prefix, by the inner name": Program(
        lambda p: p.wrapped(p.tools().prefixed("m"), {"read": YES}), [("m_read", {})], did("cb:m_read", "read")
    ),
    "around a prefix that hides what decides": Program(
        lambda p: p.wrapped(p.smart(lambda *a: p.approves).prefixed("m")), [("m_read", {})], did("cb:m_read", "read")
    ),
    "around a filter that hides what decides": Program(
        lambda p: p.wrapped(p.smart(lambda *a: p.approves).filtered(lambda c, t: True)), [READ], did("cb:read", "read")
    ),
    "around a combination": Program(
        lambda p: p.wrapped(CombinedToolset([p.smart(lambda *a: p.approves)]), {"send": YES}),
        [READ, SEND],
        did("cb:read", "read,send"),
    ),
    "in a combination": Program(
        lambda p: CombinedToolset([p.wrapped(p.tools(), {"send": YES})]), [READ, SEND], did("cb:read", "read,send")
    ),
    "around a prefix around one": Program(
        lambda p: p.wrapped(p.wrapped(p.tools(), {"read": YES}, who="in").prefixed("m"), {"m_send": YES}, who="out"),
        [("m_read", {}), ("m_send", {})],
        did("out:m_read,in:send", "read,send"),
    ),
    "options of a toolset's own": Program(
        lambda p: p.wrapped(
            p.smart(lambda n, a, c: p.approves if a["command"] in c["shell"]["safe"] else p.asks),
            {"shell": {"safe": ["ls"]}},
        ),
        [LS, RM],
        did("cb:shell", "ls,rm -rf /srv"),
    ),
    "options of a toolset's own, from two": Program(
        lambda p: p.wrapped(
            p.wrapped(
                p.smart(lambda n, a, c: p.approves if a["command"] in c.get("shell", {}).get("safe", ()) else p.asks),
                {"shell": {"safe": ["ls"]}},
                who="in",
            ),
            {"shell": {"safe": ["rm -rf /srv"]}},
            who="out",
        ),
        [LS, RM],
        did("out:shell,in:shell", "ls,rm -rf /srv"),
    ),
}
