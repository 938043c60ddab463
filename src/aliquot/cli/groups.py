"""A group of subcommands that knows what was meant when a name is misspelled."""

import click

from aliquot.cli import render


class Group(click.Group):
    """`aliquot projects lst` says `list`, and `aliquot projects` alone lists."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's; without a subcommand it is `list`."""
        has_none = not args or (args[0].startswith("-") and args[0] not in {"-h", "--help"})
        return super().parse_args(ctx, ["list", *args] if has_none and "list" in self.commands else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, but with our words for a name that is not there."""
        name = args[0]
        if name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(render.unknown_command(f"`{ctx.command_path}`", name, self.commands), ctx)
        return super().resolve_command(ctx, args)
