"""``balog watch``: run monitors on topics or files, send alerts, and test monitors on history."""

from __future__ import annotations

import importlib

import click

from balog.cli.shared import options

# A command's module is imported only when the command runs.
COMMANDS = {
    "run": "Run monitors on topics or files (the default).",
    "backtest": "Show the alerts that monitors would have sent over tables or files (the default with --backtest).",
    "suggest": "Print monitors for the pipelines of tables, with the alerts a week to expect.",
    "preview": "Print what sinks would send for an alert.",
    "silence": "Silence alerts for some time.",
    "acknowledge": "Acknowledge alerts that fire.",
    "status": "List the alerts and silences that are active now.",
}


class _WatchCommands(options.CommandGroup):
    """The commands of ``balog watch``; ``balog watch MONITORS …`` is ``balog watch run MONITORS …``, or
    ``balog watch backtest MONITORS …`` with ``--tables`` and without topics, with ``--backtest`` or ``--html``.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        is_operator = cmd_name in ("silence", "acknowledge", "status")
        module = importlib.import_module(f"balog.cli.watch.{'operators' if is_operator else cmd_name}")
        command: click.Command = getattr(module, cmd_name if is_operator else "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*COMMANDS, *ctx.help_option_names):
            given = {arg.partition("=")[0] for arg in args}
            from_tables = "--tables" in given and not given & {"--topics", "--topic", "--source"}
            over_history = from_tables or bool(given & {"--backtest", "--html"})
            args = ["backtest" if over_history else "run", *args]
        return super().parse_args(ctx, args)


@click.command("watch", cls=_WatchCommands)
def command() -> None:
    """Run monitors on topics or files, and send alerts.

    \b
    balog watch monitors.yaml --topics local:topics --topic singer-events --sinks sinks.yaml
    balog watch monitors.yaml --source archive/day.jsonl
    balog watch monitors.yaml --tables tables --backtest 90d --html backtest.html
    balog watch preview --sinks sinks.yaml
    balog watch silence orders-arrive 2h --why "the shop is being moved" --topics local:topics --topic singer-events

    `balog watch run --help` shows the options, `balog watch backtest --help` those for history.
    """
