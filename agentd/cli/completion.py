"""`agentd completion SHELL`: the script that completes commands."""

import click
from click.shell_completion import get_completion_class

_HOW = {
    "bash": 'eval "$(agentd completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(agentd completion zsh)"    # in ~/.zshrc',
    "fish": "agentd completion fish > ~/.config/fish/completions/agentd.fish",
}


@click.command(epilog="\b\n" + "\n".join(_HOW.values()))
@click.argument("shell", type=click.Choice([*_HOW]))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    """Print the script that completes commands in your shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "agentd", "_AGENTD_COMPLETE").source())
