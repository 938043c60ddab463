"""A group of subcommands that knows what was meant when a name is misspelled."""

import click

from aliquot.cli import render


class Group(click.Group):
    """`aliquot projects lst` says `list`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, but with our words for a name that is not there."""
        name = args[0]
        if name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(render.unknown_command(f"`{ctx.command_path}`", name, self.commands), ctx)
        return super().resolve_command(ctx, args)
