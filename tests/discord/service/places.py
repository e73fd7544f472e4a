"""The routes of the guild, its channels and threads, the bot itself, and its commands."""

from __future__ import annotations

from typing import Any

from tests.discord.service.gateway import guild_base
from tests.discord.service.limits import check_command, check_thread
from tests.discord.service.refusal import Form, Refusal, missing_permissions
from tests.discord.service.rest import Call, Routes
from tests.discord.service.world import PRIVATE_THREAD, PUBLIC_THREAD, Json, Place, User

routes = Routes()


@routes.add("GET", "/users/@me")
def me(call: Call) -> Json:
    return call.state.bot.json() | {"verified": True, "mfa_enabled": False, "locale": "en-US", "email": None}


@routes.add("GET", "/users/{}")
def user(call: Call) -> Json:
    return _user(call, call.ids[0]).json()


@routes.add("GET", "/gateway", open=True)
def gateway(call: Call) -> Json:
    return {"url": call.state.base.replace("http", "ws") + "/gateway/"}


@routes.add("GET", "/gateway/bot")
def gateway_bot(call: Call) -> Json:
    left = max(0, call.state.session_limit - call.state.sessions)
    start = {"total": 1000, "remaining": left, "reset_after": 14400000, "max_concurrency": 1}
    return gateway(call) | {"shards": 1, "session_start_limit": start}


@routes.add("GET", "/applications/@me")
@routes.add("GET", "/oauth2/applications/@me")
def application(call: Call) -> Json:
    state = call.state
    return {
        "id": str(state.bot.id),
        "name": state.bot.name,
        "icon": None,
        "description": "",
        "summary": "",
        "bot_public": False,
        "bot_require_code_grant": False,
        "verify_key": "0" * 64,
        "flags": 0,
        "hook": True,
        "redirect_uris": [],
        "interactions_endpoint_url": None,
        "role_connections_verification_url": None,
        "owner": state.owner.json(),
        "team": None,
        "type": None,
        "flags_new": "0",
        "explicit_content_filter": 0,
        "approximate_guild_count": 1,
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": 0,
        "bot": state.bot.json(),
    }


# The guild


def _guild(call: Call) -> None:
    if int(call.ids[0]) != call.state.guild_id:
        raise Refusal(404, 10004, "Unknown Guild")


def _user(call: Call, user_id: str) -> User:
    found = call.state.users.get(int(user_id))
    if found is None:
        raise Refusal(404, 10013, "Unknown User")
    return found


@routes.add("GET", "/guilds/{}")
def guild(call: Call) -> Json:
    call.asks("with_counts")
    _guild(call)
    return guild_base(call.state) | {"approximate_member_count": len(call.state.users)}


@routes.add("GET", "/guilds/{}/roles")
def roles(call: Call) -> list[Json]:
    _guild(call)
    return guild_base(call.state)["roles"]


@routes.add("GET", "/guilds/{}/channels")
def channels(call: Call) -> list[Json]:
    _guild(call)
    state = call.state
    return [place.json(state.bot) for place in state.places.values() if not place.is_thread]


@routes.add("GET", "/guilds/{}/members/{}")
def member(call: Call) -> Json:
    _guild(call)
    found = call.state.users.get(int(call.ids[1]))
    if found is None:
        raise Refusal(404, 10007, "Unknown Member")
    return call.state.member_json(found)


@routes.add("GET", "/guilds/{}/threads/active")
def active(call: Call) -> Json:
    _guild(call)
    return _listed(call, [one for one in call.state.places.values() if one.is_thread and not one.archived])


@routes.add("GET", "/channels/{}/threads/archived/public")
def archived(call: Call) -> Json:
    call.asks("limit", "before")
    parent = call.state.place(call.ids[0], "read_message_history")
    found = [one for one in call.state.places.values() if one.parent is parent and one.archived]
    return _listed(call, found)


def _listed(call: Call, threads: list[Place]) -> Json:
    state = call.state
    seen = [one for one in threads if state.may(one, "view_channel")]
    members = [one.member_json(state.bot.id) for one in seen if state.bot.id in one.members]
    return {"threads": [one.json(state.bot) for one in seen], "members": members, "has_more": False}


# Channels and threads


@routes.add("GET", "/channels/{}")
def channel(call: Call) -> Json:
    return call.state.place(call.ids[0]).json(call.state.bot)


@routes.add("PATCH", "/channels/{}")
def change(call: Call) -> Json:
    state = call.state
    place = state.place(call.ids[0])
    known = ("name", "archived", "auto_archive_duration", "locked", "invitable", "rate_limit_per_user", "flags")
    check_thread(call.body or {}, known, is_new=False)
    body = call.body or {}
    if not place.is_thread:
        if not state.may(place, "manage_channels"):
            raise missing_permissions()
    elif not state.may(place, "manage_threads") and (place.owner is not state.bot or place.locked or "locked" in body):
        raise missing_permissions()
    elif place.archived and body.get("archived") is not False:
        raise Refusal(400, 50083, "Thread is archived")
    names = {"name": "name", "archived": "archived", "locked": "locked", "auto_archive_duration": "archive_after"}
    changes = {names[key]: value for key, value in body.items() if key in names and value is not None}
    state.change_place(place, **changes)
    return place.json(state.bot)


@routes.add("DELETE", "/channels/{}")
def remove(call: Call) -> Json:
    state = call.state
    place = state.place(call.ids[0], "manage_threads" if state.place(call.ids[0]).is_thread else "manage_channels")
    state.remove_place(place)
    return place.json(state.bot)


@routes.add("POST", "/channels/{}/threads", status=201)
def start_thread(call: Call) -> Json:
    state = call.state
    parent = state.place(call.ids[0])
    body: dict[str, Any] = call.body or {}
    known = ("name", "auto_archive_duration", "type", "invitable", "rate_limit_per_user")
    check_thread(body, known, is_new=True)
    kind = body.get("type", PRIVATE_THREAD)
    form = Form()
    form.choice(("type",), kind, (PUBLIC_THREAD, PRIVATE_THREAD))
    form.close()
    _may_start(call, parent, "create_public_threads" if kind == PUBLIC_THREAD else "create_private_threads")
    thread = state.add_thread(
        parent, state.bot, body["name"], type=kind, auto_archive_duration=body.get("auto_archive_duration")
    )
    return thread.json(state.bot)


@routes.add("POST", "/channels/{}/messages/{}/threads", status=201)
def start_thread_on(call: Call) -> Json:
    state = call.state
    parent = state.place(call.ids[0])
    check_thread(call.body or {}, ("name", "auto_archive_duration", "rate_limit_per_user"), is_new=True)
    _may_start(call, parent, "create_public_threads")
    source = state.message(parent, call.ids[1])
    if source.thread is not None:
        raise Refusal(400, 160004, "A thread has already been created for this message")
    if source.kind not in (0, 19):
        raise Refusal(400, 50021, "Cannot execute action on a system message")
    after = call.body.get("auto_archive_duration")
    thread = state.add_thread(parent, state.bot, call.body["name"], source=source, auto_archive_duration=after)
    return thread.json(state.bot)


def _may_start(call: Call, parent: Place, permission: str) -> None:
    if parent.is_thread:
        raise Refusal(400, 50024, "Cannot execute action on this channel type")
    if not call.state.may(parent, permission):
        raise missing_permissions()


def _thread(call: Call) -> Place:
    place = call.state.place(call.ids[0])
    if not place.is_thread:
        raise Refusal(400, 50024, "Cannot execute action on this channel type")
    return place


@routes.add("PUT", "/channels/{}/thread-members/@me")
def join(call: Call) -> None:
    thread = _thread(call)
    if thread.archived:
        raise Refusal(400, 50083, "Thread is archived")
    call.state.add_member(thread, call.state.bot)


@routes.add("PUT", "/channels/{}/thread-members/{}")
def invite(call: Call) -> None:
    thread = _thread(call)
    if not call.state.may(thread, "send_messages_in_threads"):
        raise missing_permissions()
    if thread.archived:
        raise Refusal(400, 50083, "Thread is archived")
    call.state.add_member(thread, _user(call, call.ids[1]))


@routes.add("DELETE", "/channels/{}/thread-members/@me")
def leave(call: Call) -> None:
    _thread(call).members.pop(call.state.bot.id, None)


@routes.add("GET", "/channels/{}/thread-members")
def thread_members(call: Call) -> list[Json]:
    call.asks("limit", "after", "with_member")
    thread = _thread(call)
    return [thread.member_json(member_id) for member_id in thread.members]


@routes.add("GET", "/channels/{}/thread-members/{}")
def thread_member(call: Call) -> Json:
    thread = _thread(call)
    if int(call.ids[1]) not in thread.members:
        raise Refusal(404, 10007, "Unknown Member")
    return thread.member_json(int(call.ids[1]))


# Commands


def _keep(call: Call, guild_id: int | None, body: Json) -> Json:
    check_command(body)
    kept = call.state.commands.setdefault(guild_id, [])
    known = next((one for one in kept if (one["name"], one["type"]) == (body["name"], body.get("type", 1))), None)
    state = call.state
    given = {key: value for key, value in body.items() if value is not None}
    made: Json = {"type": 1, "options": [], "nsfw": False, "default_member_permissions": None} | given
    made |= {"application_id": str(state.bot.id), "version": str(state.ids.take())}
    made["id"] = known["id"] if known else str(state.ids.take())
    if guild_id is not None:
        made["guild_id"] = str(guild_id)
    if known:
        kept.remove(known)
    kept.append(made)
    state.touch()
    return made


def _commands_of(call: Call) -> int | None:
    if int(call.ids[0]) != call.state.bot.id:
        raise Refusal(403, 20012, "You are not authorized to perform this action on this application")
    if len(call.ids) == 1:
        return None
    if int(call.ids[1]) != call.state.guild_id:
        raise Refusal(403, 50001, "Missing Access")
    return call.state.guild_id


@routes.add("GET", "/applications/{}/commands")
@routes.add("GET", "/applications/{}/guilds/{}/commands")
def commands(call: Call) -> list[Json]:
    call.asks("with_localizations")
    return list(call.state.commands.get(_commands_of(call), []))


@routes.add("POST", "/applications/{}/commands")
@routes.add("POST", "/applications/{}/guilds/{}/commands")
def add_command(call: Call) -> Json:
    return _keep(call, _commands_of(call), call.body)


@routes.add("PUT", "/applications/{}/commands")
@routes.add("PUT", "/applications/{}/guilds/{}/commands")
def set_commands(call: Call) -> list[Json]:
    where = _commands_of(call)
    if len(call.body) > 100:
        raise Refusal(400, 30032, "Maximum number of application commands reached (100)")
    for index, body in enumerate(call.body):
        check_command(body, (index,))
    made = [_keep(call, where, body) for body in call.body]
    call.state.commands[where] = made
    call.state.touch()
    return made
