"""A stand-in for the Discord service, on 127.0.0.1: for the outside only, so that the real discord.py runs against it.

It speaks the REST API and the gateway, both version 10, as Discord's documents describe them, for one guild with one
bot in it: messages (with files, embeds, action rows, nonces), threads, interactions and their answers, commands,
limits, permissions, rate limits, sessions and their resumption. `Service` is the whole of it; `Person` is somebody in
the guild.

What it found out and keeps to:
- Lengths are counted in Unicode code points; blanks around an embed's texts do not count (Discord trims them).
- Without Embed Links, embeds are dropped in silence; a message of nothing but embeds is refused with 50013.
- Answers to interactions need no permission in the channel, not even to send messages or embed links.
- An interaction has to be answered within 3 seconds, and its token dies after 15 minutes; both on `service.clock`.
- A nonce is remembered for some minutes, for all channels and threads together; Discord does not say how many,
  `state.NONCE_KEPT` is our number. Where its message was deleted since, 10008 (discord/discord-api-docs PR 6647).
- In a locked thread no button can be pressed, and in an archived one only by some clients: here by none
  (discord/discord-api-docs issues 7900, 5946, 8474). A bot may still edit its messages where it is locked alone.

It is stricter than Discord: a route, method, body field, flag or component that it does not know is answered with an
error and kept in `service.errors`, which fails the test. Discord ignores unknown fields.

What it does not do: direct messages, private threads' visibility, forums, roles and permissions of people (everybody
may do everything a person can), roles beyond the bot's own, components of the second version, polls, stickers,
reactions, webhooks besides interaction tokens, autocompletion, localisation, sharding, voice, presences, the audit
log, slow mode, and rate limits by themselves: those come only when a test asks for
them (`limit`, `bucket`). Ephemeral messages do not appear on the gateway. Error texts are Discord's where they are
known; the codes are what counts.
Threads are archived by themselves when a test lets time pass (`pass_time`). Compression is zlib where the tests run;
the other kind that discord.py asks for where it finds it (zstd) is written but not exercised there.
"""

from tests.discord.service.faults import Hold
from tests.discord.service.interactions import Reply
from tests.discord.service.people import Answered, Modal, Person
from tests.discord.service.refusal import Refusal
from tests.discord.service.rest import Request
from tests.discord.service.server import Service
from tests.discord.service.world import Attachment, Message, Place, User

__all__ = [
    "Answered",
    "Attachment",
    "Hold",
    "Message",
    "Modal",
    "Person",
    "Place",
    "Refusal",
    "Reply",
    "Request",
    "Service",
    "User",
]
