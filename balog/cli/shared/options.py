"""The group of subcommands, kinds of options, and options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click
from click import option

from balog.common import config as configs
from balog.common.errors import ConfigError
from balog.common.text import nearest

if TYPE_CHECKING:
    from balog.filters import Expression
    from balog.registry import Registry

Decorator = Callable[[Any], Any]


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
            suggestion = nearest(name, self.list_commands(ctx))
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {suggestion!r}?" if suggestion else ""))
        return super().resolve_command(ctx, args)


# -- kinds of options --------------------------------------------------------------------------------------------------


class FilePath(click.Path):
    """A path that is not empty: click would make the working folder of it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        Raises:
            click.BadParameter: it is empty, or of the wrong kind.
        """
        if value == "":
            self.fail("the path is empty; give a file, or . for the working folder", param, ctx)
        return super().convert(value, param, ctx)


def integer(
    *names: str,
    help: str,
    least: int = 1,
    most: int | None = None,
    default: int | None = None,
) -> Decorator:
    """Return an option for an integer from ``least`` to ``most``."""
    kind = click.IntRange(least, most)
    return option(*names, type=kind, default=default, show_default=default is not None, metavar="N", help=help)


def seconds(
    *names: str, help: str, least: float = 0, most: float | None = None, default: float | None = None
) -> Decorator:
    """Return an option for a length of time in seconds, from ``least`` to ``most``."""
    kind = click.FloatRange(least, most)
    return option(*names, type=kind, default=default, show_default=default is not None, metavar="SECONDS", help=help)


def repeated(*names: str, metavar: str | None, help: str, **settings: Any) -> Decorator:
    """Return an option that may be given several times."""
    return option(*names, multiple=True, metavar=metavar, help=f"{help} Repeatable.", **settings)


def choice(*names: str, of: Sequence[str], default: str, help: str) -> Decorator:
    """Return an option for one of several words."""
    return option(*names, type=click.Choice(of), default=default, show_default=True, help=help)


def pairs(*names: str, metavar: str, help: str) -> Decorator:
    """Return a repeated option for ``NAME=VALUE``; the command gets a dict. The last value of a name wins."""
    return repeated(*names, metavar=metavar, help=help, callback=_as_pairs)


def _as_pairs(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(f"{parameter.opts[0]} {text!r:.100}: expected {parameter.metavar}")
        values[name] = value
    return values


def bundle(name: str, make: Callable[..., Any], *options: Decorator) -> Decorator:
    """Return a decorator that adds options and passes their values to the command as one argument.

    Args:
        name: the argument.
        make: makes it; its parameters are named as those of the options.
    """
    members = list(inspect.signature(make).parameters)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*args: Any, **values: Any) -> Any:
            argument = make(**{member: values.pop(member) for member in members})
            return command(*args, **{name: argument}, **values)

        for each in reversed(options):
            run = each(run)
        return run

    return decorate


# -- options of several commands ---------------------------------------------------------------------------------------

TOPICS_HELP = "URL of the topics: local:PATH, sqs:REGION or kafka:HOST:PORT."

topics = option("--topics", "url", required=True, metavar="URL", help=TOPICS_HELP)
verbose = option("-v", "--verbose", "is_verbose", is_flag=True, help="Print at the end what passed.")
proto_message = option("--message", default="", metavar="NAME", help="Message of a .proto file with several.")
settings = pairs("--set", "settings", metavar="KEY=VALUE", help="Setting that fills {KEY} in topic names.")
store = option(
    "--options",
    "options_file",
    metavar="FILE",
    help='JSON file with options of the store, such as {"endpoint_url": …}.',
)


def config(help: str, **settings: Any) -> Decorator:
    """Return the option ``--config``, whose argument is ``path``."""
    return option("--config", "path", metavar="FILE", help=help, **settings)


def group(help: str, default: str | None = None) -> Decorator:
    """Return the option ``--group``; required if it has no default."""
    given = {"required": True} if default is None else {"default": default, "show_default": True}
    return option("--group", metavar="NAME", help=help, **given)


def where(help: str) -> Decorator:
    """Return the option ``--where``; its argument is an ``Expression`` or None."""
    return option("--where", metavar="EXPR", help=help, callback=_compile)


def _compile(context: click.Context, parameter: click.Parameter, text: str | None) -> Expression | None:
    from balog.filters import Expression

    try:
        return None if text is None else Expression(text)
    except ConfigError as error:
        raise ConfigError(f"{error.reason}: {text:.200}", "--where") from None


def load_options(file: str | None) -> dict[str, Any]:
    """Return the options of a store in a file; none without a file."""
    return {} if file is None else configs.load(file, dict[str, Any])


class RegistryPlace(NamedTuple):
    """The registry that the options name; a service gets the bearer token of ``$BALOG_TOKEN``."""

    place: str | None
    options_file: str | None

    def open(self, *, may_be_new: bool = False) -> Registry:
        """Open the registry.

        Args:
            may_be_new: whether its folder may be missing, because the command makes it.

        Raises:
            ConfigError, MissingExtraError: as ``open_any_registry``.
            ConfigError: there is no such folder.
        """
        from balog.registry import check_folder
        from balog.service.remote_registry import open_any_registry

        if self.place is not None and not may_be_new:
            check_folder(self.place)
        return open_any_registry(self.place, None if self.options_file is None else load_options(self.options_file))


registry = bundle(
    "registry_place",
    RegistryPlace,
    option(
        "--registry",
        "place",
        envvar="BALOG_REGISTRY",
        metavar="PLACE",
        help="Registry: a folder, s3://… or http(s)://… of a service; $BALOG_REGISTRY.  [default: balog's own types]",
    ),
    store,
)


def name_of(file: IO[bytes]) -> str:
    """Return the name of a file for messages."""
    return getattr(file, "name", "<stdin>")
