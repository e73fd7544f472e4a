"""Decide several cards from a numbered list at the terminal, one by one or all together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from signoff.channels.answer_keys import ALL, CTRL_C_DENIES_ALL, NONE, ONE_BY_ONE, STOP, Key, numbers_to
from signoff.channels.dialog import Dialog
from signoff.channels.keyboard import EndOfInput, Interrupted, LeftOpen, NoLine, Withdrawn
from signoff.channels.render import draw_list
from signoff.channels.terminal_screen import Screen
from signoff.core.card import Choice
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.visible_text import visible

Stop = Callable[[NoLine], ApprovalDecision]
"""Turns "no answer was typed" (Ctrl-C, end of input, withdrawn) into a decision."""


class CardBatch:
    """Shows a list of cards and lets a person decide them in any order."""

    def __init__(
        self,
        dialogs: Sequence[Dialog],
        screen: Screen,
        by: Actor,
        *,
        stopped: Stop,
        say: Callable[[Dialog, ApprovalDecision], None],
    ) -> None:
        self._dialogs = dialogs
        self._screen = screen
        self._by = by
        self._stopped = stopped
        self._say = say
        self._can_stop = all(dialog.can_stop for dialog in dialogs)
        self._decisions: dict[int, ApprovalDecision] = {}

    def run(self) -> list[ApprovalDecision]:
        """Return one decision for each card, in order. If the run is stopped, earlier decisions still count."""
        self._drop_withdrawn()
        while self._open:
            lines = draw_list([one.card for one in self._dialogs], self._notes(), self._screen.look).lines
            try:
                self._screen.page(lines, self._moot, below=len(self._screen.key_lines(self._keys())) + 1)
                self._screen.offer(self._keys())
                self._follow(self._screen.ask("your answer", self._moot).strip())
            except Withdrawn:
                self._drop_withdrawn()
            except (Interrupted, EndOfInput, LeftOpen) as stop:
                for index in self._open:
                    is_left = self._can_stop or self._dialogs[index].barred
                    self._settle([index], self._stopped(LeftOpen() if is_left else stop))
        return [self._decisions[index] for index in range(len(self._dialogs))]

    @property
    def _open(self) -> list[int]:
        return [index for index in range(len(self._dialogs)) if index not in self._decisions]

    def _follow(self, typed: str) -> None:
        if ALL.means(typed):
            self._approve_all()
        elif NONE.means(typed):
            self._deny_all()
        elif self._can_stop and STOP.means(typed):
            raise LeftOpen
        elif ONE_BY_ONE.means(typed):
            for index in self._open:
                if not self._decide(index):
                    break
        elif typed.isdecimal() and 1 <= int(typed) <= len(self._dialogs):
            self._open_one(int(typed) - 1)
        else:
            what = f"“{visible(typed[:40])}” is not one of the answers" if typed else "Enter alone is not an answer"
            self._screen.say(f"{what}. Nothing is decided.", "yellow")

    def _open_one(self, index: int) -> None:
        if index in self._decisions:
            self._screen.say(f"{index + 1} is decided already.", "yellow")
        else:
            self._decide(index)

    def _decide(self, index: int) -> bool:
        """Open one card and return whether it was decided."""
        dialog = self._dialogs[index]
        try:
            decision = dialog.run()
        except LeftOpen:
            raise
        except NoLine as stop:
            decision = self._stopped(stop)
        if decision is not None:
            self._settle([index], decision)
        return decision is not None

    def _approve_all(self) -> None:
        unseen = [index + 1 for index in self._open if not self._dialogs[index].was_shown_whole]
        barred = [
            index + 1
            for index in self._open
            if self._dialogs[index].barred or Choice.APPROVE not in self._dialogs[index].card.choices
        ]
        if unseen:
            self._screen.say(f"Not yet: {_numbers(unseen)} not fully shown yet. Open each one first.", "yellow")
        elif barred:
            self._screen.say(f"Not all: {_numbers(barred)} not open for approval here.", "yellow")
        else:
            self._settle(self._open, ApprovalDecision(approved=True, by=self._by))

    def _deny_all(self) -> None:
        barred = [index for index in self._open if self._dialogs[index].barred]
        denied = [index for index in self._open if index not in barred]
        self._settle(denied, ApprovalDecision(approved=False, by=self._by))
        if barred:
            numbers = _numbers([index + 1 for index in barred])
            self._screen.say(f"{numbers} not yours to answer: open it to see why.", "yellow")

    def _settle(self, indexes: Sequence[int], decision: ApprovalDecision) -> None:
        for index in indexes:
            self._decisions[index] = decision
            self._say(self._dialogs[index], decision)

    def _moot(self) -> str:
        return next((reason for index in self._open if (reason := self._dialogs[index].moot())), "")

    def _drop_withdrawn(self) -> None:
        for index in self._open:
            if reason := self._dialogs[index].moot():
                self._settle([index], self._stopped(Withdrawn(reason)))

    def _notes(self) -> list[str]:
        notes: list[str] = []
        for index, dialog in enumerate(self._dialogs):
            decision = self._decisions.get(index)
            seen = "seen" if dialog.was_shown_whole else "seen in part" if dialog.was_shown else ""
            notes.append(str(decision.ending) if decision else seen)
        return notes

    def _keys(self) -> list[Key]:
        numbers = Key(numbers_to(len(self._dialogs)), "open one")
        ends = STOP if self._can_stop else CTRL_C_DENIES_ALL
        return [numbers, ONE_BY_ONE, Key(ALL.letter, "approve all, once each was seen"), NONE, ends]


def _numbers(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last} are" if others else f"{last} is"
