"""Discord: a message for every call, with buttons that outlive the bot.

`sheet` is what a message holds, drawn from a notice without any of discord.py; `channel` puts it there, `clicks` answers.
"""
