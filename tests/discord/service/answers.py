"""The routes that answer interactions: the callback, the original answer, and what follows."""

from __future__ import annotations

from tests.discord.service.interactions import COMMAND, COMPONENT, Interaction, Reply
from tests.discord.service.limits import (
    CALLBACK_FIELDS,
    EDIT_FIELDS,
    EPHEMERAL,
    FOLLOWUP_FIELDS,
    SUPPRESS_EMBEDS,
    SUPPRESS_NOTIFICATIONS,
    check_files,
    check_message,
    check_modal,
)
from tests.discord.service.refusal import Refusal, Unknown, unknown_message
from tests.discord.service.rest import Call, Routes
from tests.discord.service.world import Json, Message

routes = Routes()
LOADING = 1 << 7
_FLAGS = EPHEMERAL | SUPPRESS_EMBEDS | SUPPRESS_NOTIFICATIONS


@routes.add("POST", "/interactions/{}/{token}/callback", open=True)
def callback(call: Call) -> Json | None:
    call.asks("with_response")
    interaction = call.interactions.first(call.ids[0], call.ids[1])
    body = call.fields("type", "data")
    reply = _answer(call, interaction, body.get("type"), body.get("data") or {})
    interaction.answered = True
    call.interactions.reply(interaction, reply)
    if call.query.get("with_response") not in ("1", "true"):
        return None
    told: Json = {"id": str(interaction.id), "type": interaction.kind}
    if reply.message is not None and reply.kind != "deferred update":
        told["response_message_id"] = str(reply.message.id)
        told["response_message_loading"] = reply.kind == "deferred"
        told["response_message_ephemeral"] = reply.is_private
    if body["type"] not in (4, 7) or reply.message is None:  # there is nothing yet that could be told
        return {"interaction": told}
    return {"interaction": told, "resource": {"type": body["type"], "message": reply.message.json(call.state.bot)}}


def _answer(call: Call, interaction: Interaction, kind: object, data: Json) -> Reply:
    match kind:
        case 4:
            check_message(data, CALLBACK_FIELDS, flags=_FLAGS)
            check_files(call.files)
            interaction.original = _post(call, interaction, data)
            return Reply("message", interaction.original)
        case 5:
            check_message(data, ("flags",), flags=EPHEMERAL)
            interaction.is_loading = True
            flags = data.get("flags") or 0
            interaction.original = _post(call, interaction, {"flags": flags}, loading=True)
            return Reply("deferred", interaction.original)
        case 6 if interaction.message is not None:
            interaction.original = interaction.message
            return Reply("deferred update", interaction.message)
        case 7 if interaction.message is not None:
            check_message(data, EDIT_FIELDS, flags=SUPPRESS_EMBEDS)
            check_files(call.files)
            _here(interaction.message)
            call.state.change(interaction.message, data, call.files)
            interaction.original = interaction.message
            return Reply("update", interaction.message)
        case 9 if interaction.kind in (COMMAND, COMPONENT):
            check_modal(data)
            return Reply("modal", modal=data)
        case 6 | 7 | 9:
            errors = {"type": {"_errors": [{"code": "INTERACTION_RESPONSE_TYPE_INVALID", "message": str(kind)}]}}
            raise Refusal(400, 50035, "Invalid Form Body", errors)
        case _:
            raise Unknown(400, 50035, "Invalid Form Body", {"type": kind})


def _here(message: Message) -> None:
    if message.is_deleted:
        raise unknown_message()


def _post(call: Call, interaction: Interaction, body: Json, *, loading: bool = False) -> Message:
    """A message from an interaction: it needs none of the channel's permissions, and may be for one person only."""
    private = (body.get("flags") or 0) & EPHEMERAL
    return call.state.post(
        interaction.place,
        call.state.bot,
        body,
        call.files,
        kind=20 if interaction.kind == COMMAND else 0,
        seen_by=interaction.user.id if private else None,
        interaction=call.interactions.metadata(interaction),
        flags=LOADING if loading else 0,
    )


def _fill(call: Call, interaction: Interaction, body: Json) -> Message:
    """The answer that "thinking…" promised."""
    message = interaction.original
    assert message is not None
    _here(message)
    call.state.change(message, {key: value for key, value in body.items() if key != "flags"}, call.files)
    message.flags &= ~LOADING
    interaction.is_loading = False
    call.interactions.reply(interaction, Reply("message", message))
    return message


@routes.add("POST", "/webhooks/{}/{token}", open=True)
def follow_up(call: Call) -> Json:
    call.asks("wait", "with_components", "thread_id")
    interaction = _later(call)
    body = call.body or {}
    check_message(body, FOLLOWUP_FIELDS, flags=_FLAGS)
    check_files(call.files)
    if interaction.is_loading:
        return _fill(call, interaction, body).json(call.state.bot)
    message = _post(call, interaction, body)
    call.interactions.reply(interaction, Reply("message", message))
    return message.json(call.state.bot)


@routes.add("GET", "/webhooks/{}/{token}/messages/@original", open=True)
def original(call: Call) -> Json:
    return _original(call, _later(call)).json(call.state.bot)


@routes.add("PATCH", "/webhooks/{}/{token}/messages/@original", open=True)
def edit_original(call: Call) -> Json:
    interaction = _later(call)
    return _edit(call, interaction, _original(call, interaction))


@routes.add("DELETE", "/webhooks/{}/{token}/messages/@original", open=True)
def delete_original(call: Call) -> None:
    interaction = _later(call)
    call.state.delete(_original(call, interaction))


@routes.add("GET", "/webhooks/{}/{token}/messages/{}", open=True)
def one(call: Call) -> Json:
    call.asks("thread_id")
    return _followed(call, _later(call)).json(call.state.bot)


@routes.add("PATCH", "/webhooks/{}/{token}/messages/{}", open=True)
def edit(call: Call) -> Json:
    call.asks("thread_id", "with_components")
    interaction = _later(call)
    return _edit(call, interaction, _followed(call, interaction))


@routes.add("DELETE", "/webhooks/{}/{token}/messages/{}", open=True)
def delete(call: Call) -> None:
    call.asks("thread_id")
    call.state.delete(_followed(call, _later(call)))


def _later(call: Call) -> Interaction:
    if int(call.ids[0]) != call.state.bot.id:
        raise Refusal(404, 10015, "Unknown Webhook")
    return call.interactions.later(call.ids[1])


def _original(call: Call, interaction: Interaction) -> Message:
    if interaction.original is None:
        raise unknown_message()
    _here(interaction.original)
    return interaction.original


def _followed(call: Call, interaction: Interaction) -> Message:
    """A message that this interaction made, or the one it came from."""
    for message in [*(reply.message for reply in interaction.replies), interaction.message]:
        if message is not None and message.id == int(call.ids[2]):
            _here(message)
            return message
    raise unknown_message()


def _edit(call: Call, interaction: Interaction, message: Message) -> Json:
    body = call.body or {}
    check_message(body, EDIT_FIELDS, flags=_FLAGS)
    check_files(call.files)
    if interaction.is_loading and message is interaction.original:
        return _fill(call, interaction, body).json(call.state.bot)
    call.state.change(message, body, call.files)
    kind = "update" if message is interaction.message else "message"
    call.interactions.reply(interaction, Reply(kind, message))
    return message.json(call.state.bot)
