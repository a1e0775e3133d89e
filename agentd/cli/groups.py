"""A noun: its hand-written commands, and one for each tool of the group of that name."""

import click


class NounGroup(click.Group):
    """Hand-written commands win; a tool of that name keeps its long one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from agentd.cli.generated import commands  # noqa: PLC0415 - only for listings

        return [
            *self.commands,
            *(name for name in commands(ctx, self) if name not in self.commands),
        ]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        from agentd.cli.generated import command_named  # noqa: PLC0415 - loads every tool

        return command_named(ctx, self, cmd_name)
