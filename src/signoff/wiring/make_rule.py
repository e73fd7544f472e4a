"""*Make a rule*: from a request to one more rule in the project's `signoff.yaml`.

`rule_offers` says which rules may be made, each with the text of the file as it would be; `write_rule` writes one of
them. Whoever calls it asks a person in between.
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
from signoff.core.safe import safe_text
from signoff.core.verdict import Effect, Verdict
from signoff.errors import PolicyError, StoreError, WrongUse
from signoff.links import followed
from signoff.policy.call_paths import Facts, path_texts
from signoff.policy.engine import LONGEST_PATH, Policy
from signoff.policy.glob import is_visible
from signoff.policy.layers import compose
from signoff.policy.lint import Problem
from signoff.policy.match_result import Truth
from signoff.policy.policy_text import layers_of, read_written
from signoff.policy.proposal import Proposal, proposals
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
    """One rule that may be made now."""

    proposal: Proposal
    added: Added = field(repr=False)
    """The file with it."""
    before: str = field(repr=False)
    """The file as it was read."""
    file: str
    warnings: tuple[Problem, ...] = ()
    """What `policy check` would say about the rule."""

    @property
    def moved(self) -> tuple[str, ...]:
        """The ids of rules that are called otherwise from now on: they have none of their own, and are counted."""
        below = self.added.policy.rules[self.added.at + 1 :]
        return tuple(rule.id for rule in below if _NUMBERED.fullmatch(rule.id))

    @property
    def digest(self) -> str:
        """Of what it makes of what."""
        return sha256("\0".join((self.file, self.before, self.added.text)).encode()).hexdigest()

    @property
    def diff(self) -> tuple[str, ...]:
        """What would change in the file, as a unified diff, a line each: what stands around it may hold a secret."""
        old, new = lines_of(self.before), lines_of(self.added.text)
        return tuple(difflib.unified_diff(old, new, f"{self.file} (now)", f"{self.file} (then)", lineterm="", n=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOffers:
    """What may be made of one request, narrowest first, and why not more."""

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
    """The rules that may be made of a request's call in the file of `settings`. Writes nothing.

    One is offered only if the policy with it says so about this very call, in all layers that hold for it. Raises
    `WrongUse` where there is no file, or the policy is locked, and `WrongFile` where the file is wrong.
    """
    file = check_may_write(settings)
    text = text_of(file)
    recorded = await _recorded(broker, request)
    call = request.call.changed(args=request.effective_args) if request.call is not None else None
    if call is not None:
        call = _followed(call, settings.directory, _path_texts(call))
        request = request.changed_to(call=call)
    found = proposals(request, effect, root=settings.policy.root, reason=reason)
    offered: list[RuleOffer] = []
    refused = list(found.refused)
    if call is not None:
        policy = policy_in_text(text, file=file, root=settings.policy.root)
        asked_by = request.verdict.rules if request.verdict is not None else ()
        if policy.revision not in {one.revision for one in recorded}:
            asked_by = ()  # under rules that are others by now, and may have other names
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
    """What whoever is asked about a call is shown where they want a rule of it, in the project that is meant here."""
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
    """Have it on record that whoever works here wrote a rule. The file says so too, where the store cannot."""
    by = Actor(name=requester_of(None, settings), via=via)
    with suppress(StoreError):
        await broker.policies.written(by=by, file=file, digest=digest, text=text, request=request.id)


async def drafts_of(broker: Broker, settings: Settings, request: ApprovalRequest) -> RuleDrafts:
    """The rules that may be made of a request's call, as they are shown. Raises as `rule_offers` does."""
    found = await rule_offers(broker, settings, request)

    def safe(text: str) -> str:
        return safe_text(text, secrets=request.secrets)

    drafts = (
        RuleDraft(
            text=safe(one.proposal.text),
            diff=tuple(line[:1] + safe(line[1:]) for line in one.diff),  # a blank line has its mark alone
            warnings=tuple(safe(problem.what) for problem in one.warnings),
            digest=one.digest,
            write=partial(write_rule, settings, one),
        )
        for one in found.offered
    )
    return RuleDrafts(file=found.file, drafts=tuple(drafts), refused=tuple(map(safe, found.refused)))


def write_rule(settings: Settings, offer: RuleOffer) -> None:
    """Write a rule that a person said yes to. The file is as it was where that fails.

    Raises `WrongUse` where the policy is locked by now, and `WrongFile` where the file changed meanwhile, or cannot be
    written.
    """
    check_may_write(settings)
    exchange(offer.file, offer.before, offer.added.text)
    keep_trust(offer.file, offer.before, offer.added.text)


def check_may_write(settings: Settings) -> str:
    """The file that a rule would go to. Raises where there is none, where it is somebody else's, or locked."""
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
    """What every proposal for one request is held against."""

    policy: Policy
    """The project's own, as the file has it now."""
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
    """What people said *never* to among the calls of the tool: a rule that allows one goes before that."""

    def forbidden(self) -> str:
        """Who said never to this very call; empty where nobody did."""
        found = next((one for one in self.nevers if one.covers(self.call)), None)
        if found is None:
            return ""
        said = f"{found.by or 'somebody'} answered never to this call (grant {found.id})"
        return f"{said}, and a rule would override that: revoke it first, signoff grants revoke {found.id}"

    def pointless(self) -> str:
        """Why no rule is needed or any good, whatever it says; empty where one may be."""
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
        """The rule in the file, or why it cannot be made."""
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
        """Before which rule it has to stand. Rules that deny win wherever they are, so they go to the end."""
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
        layers = (policy, *self.others)
        texts = [text for one in layers for text in one.paths_of(self.call)]
        return compose(layers, _followed(self.call, self.directory, texts))

    def _against(self, verdict: Verdict, added: Added) -> str:
        """Which rule has the last word, by the name and the place that it has now, without the new one."""
        now = {rule.id: rule for one in self.others for rule in one.rules}
        old = [*added.policy.rules[: added.at], *added.policy.rules[added.at + 1 :]]
        now |= {then.id: rule for then, rule in zip(old, self.policy.rules, strict=True)}
        where = [f"{now[one].id} ({now[one].place})" if one in now else one for one in verdict.rules]
        who = ", ".join(where) or "the policy"
        return f"{who} still {_DOES[verdict.effect]} this call, whatever a rule here says: {verdict.reason}"


async def _recorded(broker: Broker, request: ApprovalRequest) -> tuple[Policy, ...]:
    """The layers that the question was asked under, as far as they are on record."""
    revision = request.policy_revision
    text = await broker.store.read(lambda tx: tx.policies.get(revision)) if revision else None
    try:
        return layers_of(read_written(text)) if text is not None else ()
    except PolicyError:  # written by a version that knows other rules
        return ()


def _others(settings: Settings, call: Call, recorded: Iterable[Policy]) -> tuple[Policy, ...]:
    """The layers that hold for a call besides the project's: the user's, its toolset's, and others on record."""
    own = () if settings.user is None else (settings.user,)
    toolset = settings.toolset_layers(call.toolset)
    here = {"", *(one.name for one in (*own, *toolset))}
    return (*own, *(one for one in recorded if one.name not in here), *toolset)


def _path_texts(call: Call) -> Iterator[str]:
    for _, text, _ in path_texts(call.args, named_only=False):
        if text and len(text) <= LONGEST_PATH and is_visible(text):
            yield text


def _followed(call: Call, directory: str, texts: Iterable[str]) -> Call:
    """The call with where its paths lead now."""
    return call.changed(resolved=followed(os.path.realpath(call.start or directory), texts))
