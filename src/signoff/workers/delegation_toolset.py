"""The tools with which workers call and create other workers (delegation)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed, UnexpectedModelBehavior
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from signoff.attached.marks import let_through
from signoff.config import Settings
from signoff.config.entries import WorkerFile
from signoff.core.canonical import digest
from signoff.core.card import DRAFTED
from signoff.core.verdict import Effect, Verdict
from signoff.errors import LimitReached, WrongFile, WrongUse
from signoff.gate.gated_agents import call_agent
from signoff.gate.gated_calls import running_call
from signoff.gate.single_call import call_tool
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.strictest_verdict import strictest
from signoff.workers.account import Account
from signoff.workers.bounds import Bounds, bounds_of, reading_verdict
from signoff.workers.create import LONGEST_FILE, NAME, NewWorker, draft, powers, write
from signoff.workers.limits import Delegating, WorkerDeps, account_in, account_of, check_price
from signoff.workers.worker import Worker
from signoff.workers.worker_prompt import why_private_in

CALL = "worker_call"
CREATE = "worker_create"
TOOLSET = "workers"
_RETRIES = 3


def _takes(**fields: core_schema.TypedDictField) -> SchemaValidator:
    return SchemaValidator(core_schema.typed_dict_schema(fields, extra_behavior="forbid"))


_TEXT = core_schema.typed_dict_field(core_schema.str_schema())
_FIELDS = core_schema.nullable_schema(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
_PATHS = core_schema.nullable_schema(core_schema.list_schema(core_schema.str_schema()))
_CALL_ARGS = _takes(
    worker=_TEXT,
    prompt=_TEXT,
    input=core_schema.typed_dict_field(_FIELDS, required=False),
    attachments=core_schema.typed_dict_field(_PATHS, required=False),
)
_CREATE_ARGS = _takes(name=_TEXT, file=_TEXT)
_CREATE_HELP = (
    "Write a new worker, which a person has to approve first. `file` is its YAML: instructions, description, toolsets "
    "(names only), delegates, limits, policy (rules that ask or deny), input, output. Once it is approved you can call "
    "it. It never gets more than you have; what is too much is taken out. "
)


class Colleagues(Protocol):
    """The workers of a project, as one of them sees the others."""

    @property
    def settings(self) -> Settings: ...

    def names(self) -> list[str]: ...

    def callable_by(self, file: WorkerFile) -> dict[str, str]:
        """Return the workers that a worker may call, each with its description."""
        ...

    def delegate(self, name: str) -> Worker:
        """Return a worker as others call it."""
        ...

    def created(self, name: str) -> None:
        """Add a worker that was just written."""
        ...


@dataclass(eq=False)
class DelegationToolset(Delegating):
    """`worker_call` and `worker_create` for one worker: it calls only those it may, and grants only what it has."""

    delegates_by: ClassVar[str] = CALL

    others: Colleagues
    file: WorkerFile
    """The file of the worker that has these tools."""
    bounds: Bounds | None = None
    """What applies to that worker; None while it is built."""

    @property
    def id(self) -> str:
        return TOOLSET

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools: dict[str, ToolsetTool[Any]] = {}
        if callable_ := self.others.callable_by(self.file):
            tools[CALL] = self._tool(_call_definition(callable_), _CALL_ARGS)
        if self.file.creates:
            definition = _create_definition(powers(self.others.settings, self.file, self.bounds))
            tools[CREATE] = replace(self._tool(definition, _CREATE_ARGS), args_validator_func=self._check)
        return tools

    def _tool(self, definition: ToolDefinition, takes: SchemaValidator) -> ToolsetTool[Any]:
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=_RETRIES, args_validator=takes)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if name == CREATE:
            return self._create(ctx, tool_args)
        worker, prompt, given = tool_args["worker"], tool_args["prompt"], tool_args.get("input")
        return await self._call(ctx, worker, prompt, given, tool_args.get("attachments") or (), ends_call=True)

    # --- what the gate is told ---

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict:
        """Allow calling a worker, whose own calls are judged. Ask about creating one, or deny it if its file is wrong.

        A worker that may not be called is denied. A file attached to a call is judged as if the caller read it.
        """
        if name == CALL:
            worker, caller = str(args["worker"]), account_in(ctx)
            if caller is not None and (refused := self._refused(worker, caller)):
                return Verdict(effect=Effect.DENY, rules=(TOOLSET,), reason=f"{worker} was not called: {refused}")
            return self._judged_attachments(args.get("attachments") or (), ctx)
        try:
            self._draft(args)
        except (WrongFile, WrongUse) as error:
            return Verdict(effect=Effect.DENY, rules=(TOOLSET,), reason=f"nothing was written: {error}")
        return Verdict(
            effect=Effect.ASK, rules=(TOOLSET,), reason="a new worker is written for good, and can be called"
        )

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        """Show the whole file as it would be written, and what was cut from it."""
        if name == CALL:
            return {"summary": f"call the worker {args.get('worker')}"}
        return _described(self._draft(args), self.file.name, args)

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> tuple[str, ...]:
        if name == CREATE:
            return ("fs.write",)
        return ("fs.read",) if args.get("attachments") else ()

    # --- what the tools do ---

    async def delegation(
        self,
        ctx: RunContext[Any],
        worker: str,
        prompt: str,
        input: Mapping[str, Any] | None = None,
        attachments: Sequence[str] = (),
    ) -> str:
        """Implement `signoff.toolsets.context.Delegate`, for tools of the worker's other toolsets."""
        verdict = self._judged_attachments(attachments, ctx)
        if verdict.effect is not Effect.ALLOW:
            asked = " (a person would be asked: let the model call worker_call)" if verdict.effect is Effect.ASK else ""
            return f"{worker} was not called: {verdict.reason}{asked}"
        with account_of(ctx).resting():
            return await self._call(ctx, worker, prompt, input, attachments, ends_call=False)

    async def creation(self, ctx: RunContext[Any], name: str, file: str) -> str:
        """Implement `signoff.toolsets.context.Create`, for tools of the worker's other toolsets."""
        with account_of(ctx).resting():
            only = self.filtered(lambda _, tool: tool.name == CREATE)
            return str((await call_tool(ctx, only, CREATE, {"name": name, "file": file})).content)

    async def _call(
        self,
        ctx: RunContext[Any],
        worker: str,
        prompt: str,
        given: Mapping[str, Any] | None,
        attachments: Sequence[str],
        *,
        ends_call: bool,
    ) -> str:
        caller = account_of(ctx)
        if refused := self._refused(worker, caller):
            return f"{worker} was not called: {refused}"
        try:
            called = self.others.delegate(worker)
            files = [self._attachable(one) for one in attachments]
            options = called.run_options(given, caller=caller, path=running_call().path, attachments=files)
            words = called.prompt(prompt, given, files, within=self.others.settings.directory)
            for one in caller.line:
                check_price(one.file, called.model, for_worker=worker)
        except (WrongFile, WrongUse) as error:
            return f"{worker} was not called: {error}"
        try:
            output = await call_agent(ctx, called.agent, words, ends_call=ends_call, **options)
        except LimitReached as reached:
            if reached.worker in caller.chain:
                raise
            return f"{worker} was stopped: {reached}"
        except UnexpectedModelBehavior as error:  # its model failed repeatedly; the caller's may go on
            return f"{worker} gave no valid answer: {error}"
        return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)

    def _refused(self, worker: str, caller: Account) -> str:
        """Return why a worker may not be called from here; empty if it may."""
        callable_ = self.others.callable_by(self.file)
        if worker in caller.chain:
            return f"it is already running ({' > '.join(caller.chain)}), and workers cannot call each other in a cycle"
        if worker not in callable_:
            return f"{self.file.name} may not call {shown(worker)}; {did_you_mean(worker, callable_)}"
        return caller.may_delegate()

    # --- files attached to a call ---

    def _judged_attachments(self, attachments: Sequence[str], ctx: RunContext[Any]) -> Verdict:
        """Return whether they may be attached to a call: the strictest verdict of all."""
        answers = [Verdict(effect=Effect.ALLOW, rules=(TOOLSET,), reason="each call of the worker is checked")]
        for one in attachments:
            try:
                path = self._attachable(one)
            except WrongUse as error:
                return Verdict(effect=Effect.DENY, rules=(TOOLSET,), reason=str(error))
            if path not in _given_files(ctx):  # otherwise it has seen them already
                answers.append(self._reading(one, path))
        return strictest(answers) or answers[0]

    def _reading(self, name: str, path: str) -> Verdict:
        bounds = self.bounds or bounds_of(self.others.settings, self.file)
        found = reading_verdict(bounds, self.file, path)
        if found.effect is Effect.ALLOW:
            return found
        return replace(found, reason=f"the file {shown(name)} is attached to the call: {found.reason}")

    def _attachable(self, name: str) -> str:
        """Return the real path of an attachment that a model names. Raises `WrongUse` if it may not be attached."""
        project = os.path.realpath(self.others.settings.directory)
        path = os.path.normpath(os.path.join(project, name))
        if not name or os.path.commonpath((project, path)) != project:
            raise WrongUse(f"{shown(name)} cannot be attached: it is outside the workspace")
        if why := why_private_in(project, os.path.join(project, name)):
            raise WrongUse(f"{shown(name)} cannot be attached: it {why}")
        if not os.path.isfile(path):
            raise WrongUse(f"{shown(name)} cannot be attached: there is no such file in the workspace")
        return path

    def _check(self, ctx: RunContext[Any], name: str, file: str) -> None:
        """Report what is wrong with a file to its author, the model or a person, before anybody is asked."""
        try:
            self._draft({"name": name, "file": file})
        except (WrongFile, WrongUse) as error:
            raise ToolFailed(f"nothing was written: {error}") from error

    def _create(self, ctx: RunContext[Any], args: dict[str, Any]) -> str:
        passing = let_through(ctx, CREATE, args)
        answered = passing.answered if passing is not None else ctx.tool_call_approved
        try:
            made = self._draft(args)
            # Whatever the rules allow, a person sees the file first, exactly as it would be written now.
            if not answered or (passing is not None and not _was_shown(passing.shown, made, args)):
                raise ApprovalRequired(metadata=dict(_described(made, self.file.name, args)))
            write(made)
        except (WrongFile, WrongUse) as error:
            return f"nothing was written: {error}"
        self.others.created(made.name)
        left_out = f" It was changed: {'; '.join(made.cut)}." if made.cut else ""
        return f"{made.path} was written; you can call the worker {made.name} now.{left_out}"

    def _draft(self, args: Mapping[str, Any]) -> NewWorker:
        name, text = str(args["name"]), str(args["file"])
        return draft(self.others.settings, self.file, name, text, self.others.names(), self.bounds)


def _given_files(ctx: RunContext[Any]) -> frozenset[str]:
    """Return the files that were attached to the run."""
    return frozenset(map(os.path.realpath, ctx.deps.files)) if isinstance(ctx.deps, WorkerDeps) else frozenset()


def _was_shown(card: Mapping[str, Any], made: NewWorker, args: Mapping[str, Any]) -> bool:
    """Return whether a person saw this file. No card has shown what they wrote themselves or had remembered."""
    drafted = card.get(DRAFTED)
    if not isinstance(drafted, Mapping):
        return True
    seen = cast("Mapping[str, Any]", drafted)
    return seen.get("args") != digest(dict(args)) or seen.get("text") == digest(made.text)


def _described(made: NewWorker, creator: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
    note = f"Changed to what {creator} has: {'; '.join(made.cut)}." if made.cut else ""
    return {
        "summary": f"write a new worker, {made.name}",
        "note": note or f"This is the whole file. It has nothing that {creator} does not have.",
        "path": made.path,
        "before": "",
        "after": made.text,
        DRAFTED: {"args": digest(dict(args)), "text": digest(made.text)},
    }


def _call_definition(callable_: Mapping[str, str]) -> ToolDefinition:
    workers = "\n".join(f"- {name}: {what}" if what else f"- {name}" for name, what in callable_.items())
    return ToolDefinition(
        name=CALL,
        description=f"Have another worker do something, and get its answer. It sees only what you tell it.\n{workers}",
        parameters_json_schema={
            "type": "object",
            "properties": {
                "worker": {"type": "string", "enum": list(callable_), "description": "Which worker."},
                "prompt": {"type": "string", "description": "What it should do, with all it needs to know."},
                "input": {
                    "anyOf": [{"type": "object", "additionalProperties": True}, {"type": "null"}],
                    "default": None,
                    "description": "Fields for workers that take an input.",
                },
                "attachments": {
                    "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                    "default": None,
                    "description": "Paths of files in the workspace to attach, if any.",
                },
            },
            "required": ["worker", "prompt"],
            "additionalProperties": False,
        },
        include_return_schema=False,  # it answers with text
    )


def _create_definition(most: str) -> ToolDefinition:
    # The bounds that a draft is clipped to are part of the schema, because an approval is bound to one schema: if the
    # creator's powers change between the card and the write, it is asked again.
    return ToolDefinition(
        name=CREATE,
        description=_CREATE_HELP + most,
        parameters_json_schema={
            "type": "object",
            "properties": {
                # This schema alone checks an edit from another process.
                "name": {
                    "type": "string",
                    "pattern": f"^{NAME}$",
                    "description": "Small letters, digits, `_` and `-`.",
                },
                "file": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": LONGEST_FILE,
                    "description": f"The text of the worker's file. {most}",
                },
            },
            "required": ["name", "file"],
            "additionalProperties": False,
        },
        include_return_schema=False,
    )
