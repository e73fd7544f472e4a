"""Make a rule: turn a request into one more rule in the project's `signoff.yaml`.

`rule_offers` lists the rules that may be made, each with the resulting text of the file. `write_rule` writes one of
them. The caller asks a person in between.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from signoff.channels.rule_drafts import RuleDraft, RuleDrafts
from signoff.config.file_exchange import exchange
from signoff.config.files import check_owner, from_here, text_of
from signoff.config.rule_insertion import Added, add_rule, lines_of, policy_in_text
from signoff.core.call import Call
from signoff.core.grant import Grant
from signoff.core.people import Actor
from signoff.core.quorum import who
from signoff.core.request import ApprovalRequest
from signoff.core.safe_text import safe_text
from signoff.core.verdict import Effect, Verdict
from signoff.disk_steps import DiskSteps
from signoff.errors import PolicyError, StoreError, WrongUse
from signoff.links import followed, looked_up
from signoff.policy.call_paths import Facts, path_texts
from signoff.policy.engine import Policy
from signoff.policy.glob import is_visible
from signoff.policy.layers import Layers
from signoff.policy.lint import Problem
from signoff.policy.match_result import Truth
from signoff.policy.places import is_too_long
from signoff.policy.policy_text import layers_of, read_written
from signoff.policy.proposal import Proposal, proposals
from signoff.policy.remembered import covers
from signoff.policy.step_count import Unclear
from signoff.wiring.project import lock_of, requester_of
from signoff.wiring.project_trust import keep_trust
from signoff.wiring.stores import open_broker

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings

TERMINAL = "terminal"
_NUMBERED = re.compile(r"rule-\d+")
_WORD = re.compile(r"[\w./:-]+")
_DOES = {Effect.ALLOW: "allows", Effect.ASK: "asks about", Effect.DENY: "denies"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOffer:
    """A rule that may be added now."""

    proposal: Proposal
    added: Added = field(repr=False)
    """The file with the rule."""
    before: str = field(repr=False)
    """The file as it was read."""
    file: str
    warnings: tuple[Problem, ...] = ()
    """What `policy check` would report about the rule."""

    @property
    def moved(self) -> tuple[str, ...]:
        """The ids of rules whose id changes: rules without an id are numbered, and these move down."""
        below = self.added.policy.rules[self.added.at + 1 :]
        return tuple(rule.id for rule in below if _NUMBERED.fullmatch(rule.id))

    @property
    def digest(self) -> str:
        """SHA-256 over the file's name, its text before and its text after."""
        return sha256("\0".join((self.file, self.before, self.added.text)).encode()).hexdigest()

    @property
    def diff(self) -> tuple[str, ...]:
        """The change of the file as a unified diff, one line each, without context: context may hold a secret."""
        old, new = lines_of(self.before), lines_of(self.added.text)
        return tuple(difflib.unified_diff(old, new, f"{self.file} (now)", f"{self.file} (then)", lineterm="", n=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOffers:
    """The rules that may be made from one request, narrowest first, and why not others."""

    request: ApprovalRequest
    effect: Effect
    file: str
    offered: tuple[RuleOffer, ...] = ()
    refused: tuple[str, ...] = ()


async def rule_offers(
    broker: Broker,
    settings: Settings,
    request: ApprovalRequest,
    effect: Effect = Effect.ALLOW,
    *,
    reason: str = "",
) -> RuleOffers:
    """Return the rules that may be made from a request's call in the file of `settings`. Writes nothing.

    A rule is offered only if the policy with it has this effect on this very call, in all layers that apply to it.
    Raises `WrongUse` if there is no file or the policy is locked, and `WrongFile` if the file is invalid.
    """
    file = check_may_write(settings)
    text = text_of(file)
    recorded = await _recorded(broker, request)
    call = request.effective_call
    if call is not None:
        call = _followed(call, settings.directory)
        request = request.changed_to(call=call)
    found = proposals(request, effect, root=settings.policy.root, reason=reason)
    offered: list[RuleOffer] = []
    refused = list(found.refused)
    if call is not None:
        policy = policy_in_text(text, file=file, root=settings.policy.root)
        asked_by = request.verdict.rules if request.verdict is not None else ()
        if policy.revision not in {one.revision for one in recorded}:
            asked_by = ()  # the rules changed since, and may have other ids
        others = _others(settings, call, recorded)
        nevers = await broker.grants.nevers(call) if effect is Effect.ALLOW else ()
        made = _Making(policy, settings.directory, request, call, effect, file, text, others, asked_by, tuple(nevers))
        if found.offered and (why := made.forbidden() or made.pointless()):
            return RuleOffers(request=request, effect=effect, file=file, refused=(why,))
        for one in found.offered:
            offer = made.offer(one)
            offered += [offer] if isinstance(offer, RuleOffer) else []
            refused += [offer] if isinstance(offer, str) else []
    return RuleOffers(
        request=request, effect=effect, file=file, offered=tuple(offered), refused=tuple(dict.fromkeys(refused))
    )


def rule_drafts(store: str | None, policy: str | None, request: ApprovalRequest) -> RuleDrafts:
    """Return the rule drafts for a person who is asked about a call and wants a rule for it.

    `policy` is the project's file; None: the nearest one. Writing a draft also records it.
    """
    broker, settings = open_broker(store, policy)
    with closing(broker.store):
        found = asyncio.run(drafts_of(broker, settings, request))

    def written(draft: RuleDraft) -> None:
        draft.write()
        broker, settings = open_broker(store, policy)
        with closing(broker.store):
            asyncio.run(
                record_rule(
                    broker, settings, request, draft.text, draft.digest, file=os.path.abspath(found.file), via=TERMINAL
                )
            )

    return replace(found, drafts=tuple(replace(one, write=partial(written, one)) for one in found.drafts))


async def record_rule(
    broker: Broker, settings: Settings, request: ApprovalRequest, text: str, digest: str, *, file: str, via: str
) -> None:
    """Record that the local user wrote a rule. A failing store is ignored; the file has the rule."""
    by = Actor(name=requester_of(None, settings), via=via)
    with suppress(StoreError):
        await broker.policies.written(by=by, file=file, digest=digest, text=text, request=request.id)


async def drafts_of(broker: Broker, settings: Settings, request: ApprovalRequest) -> RuleDrafts:
    """Return the rules that may be made from a request's call, as they are shown. Raises like `rule_offers`."""
    found = await rule_offers(broker, settings, request)

    def safe(text: str) -> str:
        return safe_text(text, secrets=request.secrets)

    drafts = (
        RuleDraft(
            text=safe(one.proposal.text),
            diff=tuple(line[:1] + safe(line[1:]) for line in one.diff),  # an empty line has only its marker
            warnings=tuple(safe(problem.what) for problem in one.warnings),
            digest=one.digest,
            write=partial(write_rule, settings, one),
        )
        for one in found.offered
    )
    return RuleDrafts(file=found.file, drafts=tuple(drafts), refused=tuple(map(safe, found.refused)))


def write_rule(settings: Settings, offer: RuleOffer) -> None:
    """Write a rule that a person confirmed. If that fails, the file is unchanged.

    Raises `WrongUse` if the policy is locked by now, and `WrongFile` if the file changed meanwhile or cannot be
    written.
    """
    check_may_write(settings)
    exchange(offer.file, offer.before, offer.added.text)
    keep_trust(offer.file, offer.before, offer.added.text)


def check_may_write(settings: Settings) -> str:
    """Return the file that a rule would be written to. Raises if there is none, or it is locked or somebody else's."""
    if not settings.file:
        raise WrongUse("there is no signoff.yaml here or above to write a rule to\n  `signoff init` writes a first one")
    file = from_here(settings.file)
    check_owner(file, fix="ask its owner to write the rule, or make the file yours with chown")
    if (place := lock_of(file)) is not None:
        raise WrongUse(
            f"the policy of this project is locked ({place}), so no rule can be added; nothing was written\n"
            "  A maintainer of the file has to edit it"
        )
    return file


@dataclass(frozen=True, slots=True)
class _Making:
    """What every proposal for one request is checked against."""

    policy: Policy
    """The project's own policy, as the file has it now."""
    directory: str
    request: ApprovalRequest
    call: Call
    effect: Effect
    file: str
    text: str
    others: tuple[Policy, ...]
    """The layers besides the project's own, as far as they are known here."""
    asked_by: tuple[str, ...]
    """The rules that asked, if they are still the same."""
    nevers: tuple[Grant, ...]
    """Grants where people answered *never* to calls of this tool: a rule that allows a call overrides them."""

    def forbidden(self) -> str:
        """Return who answered never to this very call, as text; empty if nobody did."""
        facts = Facts(self.call, self.call.start or self.directory)
        found = next((one for one in self.nevers if covers(one, facts) is not Truth.NO), None)
        if found is None:
            return ""
        said = f"{found.by or 'somebody'} answered never to this call (grant {found.id})"
        return f"{said}, and a rule would override that: revoke it first, signoff grants revoke {found.id}"

    def pointless(self) -> str:
        """Return why no rule would be needed or have an effect, whatever it says; empty if one may."""
        now = self._verdict(self.policy)
        if now.effect is self.effect and self.effect is not Effect.ASK:
            return f"the policy {_DOES[now.effect]} this call already ({', '.join(now.rules)}); no rule is needed"
        if self.effect is Effect.ALLOW and now.requirement.is_strict:
            needed = who(now.requirement)
            return f"the policy now requires {needed} for this call: write a rule without them by hand"
        said = self.request.verdict
        if self.effect is not Effect.ALLOW or said is None:
            return ""
        known = {rule.id for policy in (self.policy, *self.others) for rule in policy.rules}
        outside = [one for one in said.rules if one not in known and not _NUMBERED.fullmatch(one)]
        if not outside:
            return ""
        return f"{', '.join(outside)} asks about this call: no rule of {self.file} can overrule that"

    def offer(self, proposal: Proposal) -> RuleOffer | str:
        """Return the rule in the file, or why it cannot be made."""
        at = self._place()
        try:
            added = add_rule(self.text, proposal.value, at=at, file=self.file, root=self.policy.root)
        except PolicyError as error:
            return str(error)
        verdict = self._verdict(added.policy)
        if verdict.effect is not self.effect or (self.effect is Effect.ALLOW and verdict.errors):
            return self._against(verdict, added)
        own = added.rule.id
        warnings = [one for one in added.policy.warnings if own == one.rule or own in _WORD.findall(one.what)]
        if proposal.name != "exact" and self.nevers:
            ids = ", ".join(one.id for one in self.nevers)
            what = f"people answered never to other calls of {self.call.tool}, and this rule overrides those it matches"
            warnings.append(Problem(f"{what} (signoff grants list: {ids})", added.rule.place, own))
        return RuleOffer(proposal=proposal, added=added, before=self.text, file=self.file, warnings=tuple(warnings))

    def _place(self) -> int:
        """Return the index of the rule it must precede. Rules that deny win at any position, so they go to the end."""
        rules = self.policy.rules
        if self.effect is Effect.DENY:
            return len(rules)
        facts = Facts(self.call, self.policy.root)
        for at, rule in enumerate(rules):
            in_turn = rule.effect is not Effect.DENY or rule.otherwise
            if in_turn and (rule.id in self.asked_by or rule.find(facts).truth is not Truth.NO):
                return at
        return len(rules)

    def _verdict(self, policy: Policy) -> Verdict:
        layers = Layers((policy, *self.others))
        return layers.judge(looked_up(self.call.changed(resolved={}), layers, os.path.realpath(self.directory)))

    def _against(self, verdict: Verdict, added: Added) -> str:
        """Return which rule overrules the new one, with the id and place that it has now, without the new one."""
        now = {rule.id: rule for one in self.others for rule in one.rules}
        old = [*added.policy.rules[: added.at], *added.policy.rules[added.at + 1 :]]
        now |= {then.id: rule for then, rule in zip(old, self.policy.rules, strict=True)}
        where = [f"{now[one].id} ({now[one].place})" if one in now else one for one in verdict.rules]
        who = ", ".join(where) or "the policy"
        return f"{who} still {_DOES[verdict.effect]} this call, whatever a rule here says: {verdict.reason}"


async def _recorded(broker: Broker, request: ApprovalRequest) -> tuple[Policy, ...]:
    """Return the layers that the question was asked under, as far as they are recorded."""
    revision = request.policy_revision
    text = await broker.store.read(lambda tx: tx.policies.get(revision)) if revision else None
    try:
        return layers_of(read_written(text)) if text is not None else ()
    except PolicyError:  # written by a version with other rules
        return ()


def _others(settings: Settings, call: Call, recorded: Iterable[Policy]) -> tuple[Policy, ...]:
    """Return the layers for a call besides the project's: the user's, its toolset's, and others on record."""
    own = () if settings.user is None else (settings.user,)
    toolset = settings.toolset_layers(call.toolset)
    here = {"", *(one.name for one in (*own, *toolset))}
    return (*own, *(one for one in recorded if one.name not in here), *toolset)


def _followed(call: Call, directory: str) -> Call:
    """Return the call with every text in it resolved that may be a path (symlinks followed). Raises `WrongUse` if that
    takes too long.
    """
    try:
        leads = followed(os.path.realpath(call.start or directory), _path_texts(call), DiskSteps())
    except Unclear as unclear:
        raise WrongUse(f"no rule can be made of this call: it {unclear}") from None
    return call.changed(resolved=leads)


def _path_texts(call: Call) -> Iterator[str]:
    for _, text, _ in path_texts(call.args, named_only=False):
        if text and not is_too_long(text) and is_visible(text):
            yield text
