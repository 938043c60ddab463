"""`aliquot completion SHELL`: the script that a shell reads to complete commands, options and names."""

import click
from click import shell_completion

HOW = {
    "bash": 'add to ~/.bashrc: eval "$(aliquot completion bash)"',
    "zsh": 'add to ~/.zshrc: eval "$(aliquot completion zsh)"',
    "fish": "run: aliquot completion fish > ~/.config/fish/completions/aliquot.fish",
}


@click.command(epilog="; ".join(f"{shell}: {how}" for shell, how in HOW.items()))
@click.argument("shell", type=click.Choice(list(HOW)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for bash, zsh or fish."""
    made = shell_completion.get_completion_class(shell)
    assert made is not None, f"click completes {shell}"
    root = context.find_root().command
    print(made(root, {}, "aliquot", "_ALIQUOT_COMPLETE").source())
