"""Discord: a message for every call, with buttons that outlive the bot.

What a message holds (`sheet`) is drawn from a notice without any of discord.py; `channel` puts it there.
"""
