"""The routes of channels' messages."""

from __future__ import annotations

from typing import Any

from tests.discord.service.limits import (
    EDIT_FIELDS,
    MESSAGE_FIELDS,
    SUPPRESS_EMBEDS,
    SUPPRESS_NOTIFICATIONS,
    check_files,
    check_message,
)
from tests.discord.service.refusal import Refusal, missing_access, missing_permissions, unknown_message
from tests.discord.service.rest import Call, Routes
from tests.discord.service.world import Json, Place

routes = Routes()


@routes.add("POST", "/channels/{}/messages")
def send(call: Call) -> Json:
    state = call.state
    place = state.place(call.ids[0])
    if not state.may(place, "send_messages_in_threads" if place.is_thread else "send_messages"):
        raise missing_permissions()
    body = call.body or {}
    check_message(body, MESSAGE_FIELDS, flags=SUPPRESS_EMBEDS | SUPPRESS_NOTIFICATIONS)
    check_files(call.files)
    if call.files and not state.may(place, "attach_files"):
        raise missing_permissions()
    if body.get("enforce_nonce") and (known := state.kept_nonce(body.get("nonce"))):
        if known.is_deleted:
            raise unknown_message()
        return known.json(state.bot)
    _check_reference(call, place, body.get("message_reference"))
    if body.get("embeds") and not state.may(place, "embed_links"):
        body = _without_embeds(call, body)
    state.open_for(place, state.bot, may_manage=state.may(place, "manage_threads"))
    return state.post(place, state.bot, body, call.files).json(state.bot)


def _without_embeds(call: Call, body: Json) -> Json:
    """Without Embed Links, embeds are dropped in silence; a message of embeds alone is refused.

    So it is told in discord/discord-api-docs issues 2601 and 5648. What buttons alone do is told nowhere:
    here the message goes out with its buttons and without its text, which is the worse of the two for a bot.
    """
    if not (body.get("content") or call.files or body.get("components")):
        raise missing_permissions()
    return {**body, "embeds": []}


def _check_reference(call: Call, place: Place, reference: Any) -> None:
    if reference is None:
        return
    if not call.state.may(place, "read_message_history"):
        raise Refusal(400, 160002, "Cannot reply without permission to read message history")
    if int(reference["message_id"]) not in place.messages and reference.get("fail_if_not_exists", True):
        errors = {"message_reference": {"_errors": [{"code": "REPLIES_UNKNOWN_MESSAGE", "message": "Unknown message"}]}}
        raise Refusal(400, 50035, "Invalid Form Body", errors)


@routes.add("GET", "/channels/{}/messages")
def history(call: Call) -> list[Json]:
    state = call.state
    call.asks("limit", "before", "after", "around")
    place = state.place(call.ids[0])
    if not state.may(place, "read_message_history"):
        return []
    limit = int(call.query.get("limit", 50))
    if not 1 <= limit <= 100:
        raise Refusal(400, 50035, "Invalid Form Body", {"limit": {"_errors": []}})
    newest_first = sorted(place.messages.values(), key=lambda message: -message.id)
    if "around" in call.query:
        centre = int(call.query["around"])
        newest_first.sort(key=lambda message: abs(message.id - centre))
        found = sorted(newest_first[:limit], key=lambda message: -message.id)
    elif "before" in call.query:
        found = [message for message in newest_first if message.id < int(call.query["before"])][:limit]
    elif "after" in call.query:
        found = [message for message in newest_first if message.id > int(call.query["after"])][-limit:]
    else:
        found = newest_first[:limit]
    return [message.json(state.bot) for message in found]


@routes.add("GET", "/channels/{}/messages/{}")
def one(call: Call) -> Json:
    state = call.state
    place = state.place(call.ids[0])
    if not state.may(place, "read_message_history"):
        raise missing_access()
    return state.message(place, call.ids[1]).json(state.bot)


@routes.add("PATCH", "/channels/{}/messages/{}")
def edit(call: Call) -> Json:
    state = call.state
    place = state.place(call.ids[0])
    message = state.message(place, call.ids[1])
    body = call.body or {}
    check_message(body, EDIT_FIELDS, flags=SUPPRESS_EMBEDS)
    check_files(call.files)
    if message.author is not state.bot:
        if set(body) - {"flags", "tts", "allowed_mentions"}:
            raise Refusal(403, 50005, "Cannot edit a message authored by another user")
        if not state.may(place, "manage_messages"):
            raise missing_permissions()
    if message.kind not in (0, 19):
        raise Refusal(403, 50021, "Cannot execute action on a system message")
    if place.archived:
        raise Refusal(400, 50083, "Thread is archived")
    if call.files and not state.may(place, "attach_files"):
        raise missing_permissions()
    if body.get("embeds") and not state.may(place, "embed_links"):
        body = {**body, "embeds": []}
    state.change(message, body, call.files)
    return message.json(state.bot)


@routes.add("DELETE", "/channels/{}/messages/{}")
def delete(call: Call) -> None:
    state = call.state
    place = state.place(call.ids[0])
    message = state.message(place, call.ids[1])
    if message.author is not state.bot and not state.may(place, "manage_messages"):
        raise missing_permissions()
    if place.archived:
        raise Refusal(400, 50083, "Thread is archived")
    state.delete(message)


@routes.add("POST", "/channels/{}/messages/bulk-delete")
def bulk_delete(call: Call) -> None:
    state = call.state
    place = state.place(call.ids[0], "manage_messages")
    ids = call.fields("messages").get("messages") or []
    if not 2 <= len(ids) <= 100:
        raise Refusal(
            400,
            50016,
            "Provided too few or too many messages to delete.",
        )
    found = [place.messages[int(one)] for one in ids if int(one) in place.messages]
    if not found:
        raise unknown_message()
    state.delete(*found)


@routes.add("POST", "/channels/{}/typing")
def typing(call: Call) -> None:
    state = call.state
    place = state.place(call.ids[0])
    if not state.may(place, "send_messages_in_threads" if place.is_thread else "send_messages"):
        raise missing_permissions()
    told = {
        "channel_id": str(place.id),
        "guild_id": str(state.guild_id),
        "user_id": str(state.bot.id),
        "timestamp": int(state.clock.now().timestamp()),
        "member": state.member_json(state.bot),
    }
    state.dispatch("TYPING_START", told, place)
