"""Discord channel: a message for every call, with buttons that keep working after the bot restarts.

The content of a message (`sheet`) is drawn from a notice without discord.py; `channel` posts it.
"""
