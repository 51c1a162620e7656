"""Pages of the commands, from click: arguments, options, defaults, environment variables, exit codes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import click
import tables

from balog import cli

FOLDER = "reference/cli"
EXIT_CODES = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed: one line on stderr says what, where, and what to do |
| 2 | wrong use, or an invalid config; nothing ran |
| 130 | ended by SIGINT |
| 143 | ended by SIGTERM |

Commands that drain when they are asked to stop list their own codes.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the Markdown of each page: one for all commands, and one a command."""
    yield f"{FOLDER}/index.md", overview()
    for name in cli.COMMANDS:
        command = cli.main.get_command(click.Context(cli.main), name)
        yield f"{FOLDER}/{name}.md", page(name, command)


def overview() -> str:
    lines = [
        "# Commands",
        "For everyone who runs `balog`. After this page you know the commands, and how they end.",
        "Each command prints data to stdout and everything else to stderr. `balog COMMAND --help` shows its page here.",
    ]
    for group, commands in cli.GROUPS.items():
        rows = [(f"[`balog {name}`]({name}.md)", tables.text(summary)) for name, summary in commands.items()]
        lines += [f"## {group}", tables.table(("command", "what it does"), rows)]
    return "\n\n".join([*lines, EXIT_CODES])


def page(name: str, command: click.Command) -> str:
    parts = [
        f"# balog {name}",
        f"For everyone who runs `balog {name}`: its arguments, options, defaults and exit codes.",
    ]
    for path, each in walk(f"balog {name}", command):
        if each is not command:
            parts.append(f"## {path}")
        parts += section(path, each)
    return "\n\n".join(parts) + "\n"


def walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and the commands below it, each with how it is called."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from walk(f"{path} {name}", below)


def section(path: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=path, max_content_width=110)
    yield f"```text\n{path} {' '.join(command.collect_usage_pieces(context))}\n```"
    yield prose(command.help or "")
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        heads = ("option", "type", "default", "environment variable", "meaning")
        yield tables.table(heads, [row(each, context) for each in options])
    epilog = command.epilog or ""
    if epilog:
        yield prose(epilog)


def row(option: click.Option, context: click.Context) -> tuple[str, ...]:
    names = ", ".join(tables.code(name) for name in [*option.opts, *option.secondary_opts])
    meaning = tables.text(option.help or "") + (" Required." if option.required else "")
    variables = [option.envvar] if isinstance(option.envvar, str) else option.envvar or []
    return names, kind_of(option, context), default_of(option), ", ".join(map(tables.code, variables)), meaning


def kind_of(option: click.Option, context: click.Context) -> str:
    kind = option.type
    if option.is_flag:
        shown = "flag"
    elif isinstance(kind, click.Choice):
        shown = ", ".join(tables.code(str(each)) for each in kind.choices)
    else:
        shown = tables.code(option.make_metavar(context))
        if isinstance(kind, click.IntRange | click.FloatRange):
            shown += " " + limits(kind)
    return shown + (", can be repeated" if option.multiple else "")


def limits(kind: click.IntRange | click.FloatRange) -> str:
    least, most = kind.min, kind.max
    if most is None:
        return f"≥ {least:,}" if least is not None else ""
    return f"{least:,} to {most:,}" if least is not None else f"≤ {most:,}"


def default_of(option: click.Option) -> str:
    default: Any = option.default
    is_set = default is not None and type(default).__name__ != "Sentinel" and not callable(default)
    if option.is_flag or option.multiple or not is_set or default in ("", ()):
        return ""
    return tables.code(str(default))


def prose(help_text: str) -> str:
    """Return a help text as Markdown. A paragraph that begins with ``\\b`` keeps its lines."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(help_text)):
        if paragraph.startswith("\b"):
            parts.append("```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```")
        else:
            parts.append(tables.text(paragraph))
    return "\n\n".join(parts)
