"""The click group of every command that has subcommands."""

from __future__ import annotations

import click

from balog.suggestions import nearest

__all__ = ["CommandGroup"]


class CommandGroup(click.Group):
    """A group that suggests a command for an unknown one, in the words that click has for options."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name, the command and the arguments left.

        Raises:
            click.UsageError: there is no such command.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            found = nearest(name, self.list_commands(ctx))
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {found!r}?" if found else ""))
        return super().resolve_command(ctx, args)
