"""People in the guild: they press, choose, fill in, say, command and moderate, and read what they get back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from tests.discord.service.interactions import COMMAND, COMPONENT, SUBMIT, Interaction, Interactions, Reply
from tests.discord.service.refusal import Refusal, unknown_message
from tests.discord.service.state import File, State
from tests.discord.service.world import Json, Message, Place, User

T = TypeVar("T")
PATIENCE = 60


class Home(Protocol):
    """What people need of the service."""

    state: State
    interactions: Interactions

    async def inside(self, work: Coroutine[Any, Any, T]) -> T: ...
    async def do(self, work: Callable[[], T]) -> T: ...
    async def until(self, look: Callable[[], T | None], what: str = "", timeout: float = PATIENCE) -> T: ...


class Answered:
    """What became of something a person did."""

    def __init__(self, home: Home, interaction: Interaction) -> None:
        self._home = home
        self.interaction = interaction

    @property
    def token(self) -> str:
        return self.interaction.token

    @property
    def replies(self) -> list[Reply]:
        """All answers so far, deferrals among them."""
        return list(self.interaction.replies)

    async def acknowledged(self, timeout: float = PATIENCE) -> Reply:
        """The first answer, whatever it is."""
        return await self._home.inside(self._wait(0, timeout, visible=False))

    async def reply(self, number: int = 0, timeout: float = PATIENCE) -> Reply:
        """What the person gets to see: a message, an update, or a modal; "thinking…" is waited past.

        `number`: the how-manieth, from 0.
        """
        return await self._home.inside(self._wait(number, timeout, visible=True))

    async def modal(self, timeout: float = PATIENCE) -> Modal:
        """The modal that is shown."""
        reply = await self.reply(timeout=timeout)
        assert reply.modal is not None, f"no modal was shown, but: {reply.kind} {reply.text!r}"
        return Modal(self._home, self.interaction, reply.modal)

    async def _wait(self, number: int, timeout: float, *, visible: bool) -> Reply:
        def look() -> Reply | None:
            found = [reply for reply in self.interaction.replies if reply.is_visible or not visible]
            return found[number] if len(found) > number else None

        def what() -> str:
            kinds = [reply.kind for reply in self.interaction.replies]
            return f"{self.interaction.user.name} got no answer to {self.interaction.data}; so far: {kinds}"

        return await self._home.state.until(look, timeout, what)


class Modal:
    """A modal on somebody's screen."""

    def __init__(self, home: Home, origin: Interaction, data: Json) -> None:
        self._home = home
        self._origin = origin
        self.data = data
        self.title: str = data["title"]
        self.fields = [_Field(row) for row in data["components"] if row["type"] != 10]

    @property
    def values(self) -> dict[str, str]:
        """What is filled in already, by custom id."""
        return {field.id: field.value for field in self.fields}

    def field(self, name: str) -> Json:
        """The text input or menu with this custom id or label."""
        return self._find(name).child

    def _find(self, name: str) -> _Field:
        for field in self.fields:
            if name in (field.id, field.label):
                return field
        raise Refusal(400, 50035, f"the modal has no field {name!r}, but {[field.id for field in self.fields]}")

    async def submit(self, values: Mapping[str, str] | None = None, *, anyway: bool = False) -> Answered:
        """Send it: fields are named by custom id or label, the others keep what was in them.

        What the client would not let a person send (too short, too long, missing) is refused, unless `anyway`.
        """
        filled = {field.id: field.value for field in self.fields}
        for name, value in (values or {}).items():
            filled[self._find(name).id] = value
        for field in self.fields:
            if not anyway:
                field.check(filled[field.id])
        components = [field.answer(filled[field.id]) for field in self.fields]
        data = {"custom_id": self.data["custom_id"], "components": components}
        origin = self._origin
        begin = self._home.interactions.begin
        made = await self._home.do(lambda: begin(SUBMIT, origin.user, origin.place, data, origin.message))
        return Answered(self._home, made)


class _Field:
    def __init__(self, row: Json) -> None:
        self.row = row
        self.child: Json = row["component"] if row["type"] == 18 else row["components"][0]
        self.id: str = self.child["custom_id"]
        self.label: str = row.get("label") or self.child.get("label") or ""
        self.value: str = self.child.get("value") or ""

    def check(self, value: str) -> None:
        least, most = self.child.get("min_length") or 0, self.child.get("max_length") or 4000
        if self.child["type"] == 4 and not value and not self.child.get("required", True):
            return
        if self.child["type"] == 4 and not max(least, 1) <= len(value) <= most:
            raise Refusal(400, 50035, f"{self.label!r} takes {max(least, 1)} to {most} characters, not {len(value)}")

    def answer(self, value: str) -> Json:
        child: Json = {"type": self.child["type"], "id": 2, "custom_id": self.id}
        child |= {"value": value} if self.child["type"] == 4 else {"values": [value] if value else []}
        if self.row["type"] == 18:
            return {"type": 18, "id": 1, "component": child}
        return {"type": 1, "id": 1, "components": [child]}


class Person:
    """Somebody in the guild. They may do everything there that people do, moderating among it."""

    def __init__(self, home: Home, user: User) -> None:
        self._home = home
        self.user = user

    @property
    def id(self) -> int:
        return self.user.id

    @property
    def name(self) -> str:
        return self.user.name

    @property
    def mention(self) -> str:
        return self.user.mention

    # Components

    async def press(self, message: Message, button: str) -> Answered:
        """Press the button with this label or custom id.

        One that is not there, or is grey, cannot be pressed; in a locked or archived thread, all are.
        """
        return await self._use(message, button, 2, lambda child: {"custom_id": child["custom_id"]})

    async def choose(self, message: Message, menu: str, *values: str) -> Answered:
        """Choose in the menu with this placeholder or custom id, by value or by label."""

        def chosen(child: Json) -> Json:
            by_name = {name: one["value"] for one in child["options"] for name in (one["label"], one["value"])}
            if not all(value in by_name for value in values):
                raise Refusal(400, 50035, f"{values} is not among {sorted(by_name)}")
            if not child.get("min_values", 1) <= len(values) <= child.get("max_values", 1):
                raise Refusal(400, 50035, f"{len(values)} values cannot be chosen")
            return {"custom_id": child["custom_id"], "values": [by_name[value] for value in values]}

        return await self._use(message, menu, 3, chosen)

    async def _use(self, message: Message, name: str, kind: int, data: Callable[[Json], Json]) -> Answered:
        def work() -> Interaction:
            if message.is_deleted:
                raise unknown_message()
            if message.seen_by not in (None, self.id):
                raise Refusal(403, 50001, "Missing Access")
            if message.place.locked or message.place.archived:
                raise Refusal(400, 50083, "nothing can be pressed in a thread that is locked or archived")
            child = message.child(name)
            if child is None or child["type"] != kind or "custom_id" not in child:
                raise Refusal(400, 50035, f"there is no {name!r} on this message:\n{message.text}")
            if child.get("disabled"):
                raise Refusal(400, 50035, f"{name!r} is disabled")
            filled = data(child) | {"component_type": kind, "id": 1}
            return self._home.interactions.begin(COMPONENT, self.user, message.place, filled, message)

        return Answered(self._home, await self._home.do(work))

    async def forge(
        self,
        place: Place,
        custom_id: str,
        message: Message | None = None,
        values: Sequence[str] | None = None,
        *,
        late: float = 0.0,
        kind: int = COMPONENT,
    ) -> Answered:
        """Send a press that no button stands for (or none any more). `values`: as if it came from a menu.

        `late`: the bot hears of it so many seconds later. `kind`: as if it were an interaction of another type.
        """
        data: Json = {"custom_id": custom_id, "component_type": 2, "id": 1}
        if values is not None:
            data |= {"component_type": 3, "values": list(values)}

        def work() -> Interaction:
            carrier = message or self._home.state.post(
                place, self._home.state.bot, {"content": "forged"}, seen_by=self.id
            )
            return self._home.interactions.begin(kind, self.user, place, data, carrier, late=late)

        return Answered(self._home, await self._home.do(work))

    async def forge_modal(
        self, place: Place, custom_id: str, values: Mapping[str, str], message: Message | None = None
    ) -> Answered:
        """Submit a modal that was never shown to this person."""
        rows = [
            {"type": 1, "id": 1, "components": [{"type": 4, "id": 2, "custom_id": key, "value": value}]}
            for key, value in values.items()
        ]
        data: Json = {"custom_id": custom_id, "components": rows}
        begin = self._home.interactions.begin
        return Answered(self._home, await self._home.do(lambda: begin(SUBMIT, self.user, place, data, message)))

    # Commands

    async def command(self, words: str, place: Place, *, patience: float = PATIENCE, **options: Any) -> Answered:
        """Use a slash command, once it is there: `"signoff pending"` is the command, then group and subcommand."""
        state = self._home.state
        first, *rest = words.split()

        def known() -> Json | None:
            commands = [*state.commands.get(state.guild_id, []), *state.commands.get(None, [])]
            return next((one for one in commands if one["name"] == first and one["type"] == 1), None)

        def work() -> Interaction:
            data: Json = {"id": found["id"], "name": first, "type": 1, "options": _filled(found, rest, options)}
            if "guild_id" in found:
                data["guild_id"] = found["guild_id"]
            return self._home.interactions.begin(COMMAND, self.user, place, data)

        found = await self._home.until(known, f"nobody registers the command {first!r}", patience)
        return Answered(self._home, await self._home.do(work))

    # Messages

    async def say(self, place: Place, text: str, files: Sequence[File] = (), *, to: Message | None = None) -> Message:
        """Write a message; `to`: as a reply to this one."""
        state = self._home.state

        def work() -> Message:
            state.open_for(place, self.user, may_manage=False)
            body: Json = {"content": text}
            if to is not None:
                body["message_reference"] = {"message_id": str(to.id), "channel_id": str(place.id)}
            return state.post(place, self.user, body, files, kind=19 if to else 0)

        return await self._home.do(work)

    async def edit(self, message: Message, text: str) -> None:
        assert message.author is self.user, "people edit their own messages only"
        await self._home.do(lambda: self._home.state.change(message, {"content": text}))

    def sees(self, message: Message) -> bool:
        return not message.is_deleted and message.seen_by in (None, self.id)

    # Moderating

    async def delete(self, *messages: Message) -> None:
        """Delete messages; several at once are one bulk deletion."""
        await self._home.do(lambda: self._home.state.delete(*messages))

    async def suppress_embeds(self, message: Message, suppressed: bool = True) -> None:
        def work() -> None:
            message.flags = message.flags | 4 if suppressed else message.flags & ~4
            self._home.state.tell_message("MESSAGE_UPDATE", message)

        await self._home.do(work)

    async def start_thread(self, place: Place, name: str, source: Message | None = None) -> Place:
        return await self._home.do(lambda: self._home.state.add_thread(place, self.user, name, source=source))

    async def rename(self, place: Place, name: str) -> None:
        await self._home.do(lambda: self._home.state.change_place(place, name=name))

    async def archive(self, thread: Place, archived: bool = True) -> None:
        await self._home.do(lambda: self._home.state.change_place(thread, archived=archived))

    async def lock(self, thread: Place, locked: bool = True) -> None:
        """Locking in the client also archives; this sets the lock alone, `archive` the other."""
        await self._home.do(lambda: self._home.state.change_place(thread, locked=locked))

    async def delete_place(self, place: Place) -> None:
        """Delete a thread, or a channel with all its threads."""
        await self._home.do(lambda: self._home.state.remove_place(place))


def _filled(command: Json, path: Sequence[str], options: Mapping[str, Any]) -> list[Json]:
    """The options of a command as the client sends them: subcommands wrapped, values by their type."""
    known = command.get("options") or []
    if path:
        inner = next((one for one in known if one["name"] == path[0] and one["type"] in (1, 2)), None)
        if inner is None:
            raise Refusal(400, 50035, f"/{command['name']} has no {path[0]!r}")
        return [{"type": inner["type"], "name": inner["name"], "options": _filled(inner, path[1:], options)}]
    by_name = {one["name"]: one for one in known}
    missing = [name for name, one in by_name.items() if one.get("required") and name not in options]
    if missing or set(options) - set(by_name):
        raise Refusal(400, 50035, f"/{command['name']} takes {sorted(by_name)}, and needs {missing}")
    for name, value in options.items():
        choices = by_name[name].get("choices")
        if choices and value not in [one["value"] for one in choices]:
            raise Refusal(400, 50035, f"{value!r} is not a choice of {name!r}")
    return [{"type": by_name[name]["type"], "name": name, "value": value} for name, value in options.items()]
