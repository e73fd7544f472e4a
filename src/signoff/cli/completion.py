"""`signoff completion`: print the shell completion script for commands, options and ids."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command(no_args_is_help=True)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a completion script for a shell. IDs of requests, runs and grants complete too, with their titles.

    \b
    Examples:
      signoff completion bash >> ~/.bashrc
      signoff completion zsh >> ~/.zshrc
      signoff completion fish > ~/.config/fish/completions/signoff.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three"
    click.echo(kind(ctx.find_root().command, {}, "signoff", "_SIGNOFF_COMPLETE").source())
