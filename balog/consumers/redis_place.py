"""A database of a Redis server: how a URL names it, how it is reached, and what its errors say."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import SplitResult, parse_qsl, urlsplit

from balog.errors import ConfigError, MissingExtraError, TopicError
from balog.secrets import Secret

if TYPE_CHECKING:
    from redis import CredentialProvider, Redis

PORT = 6379

REDIS_OPTIONS = frozenset({"username", "password.env", "password.file", "ca_file", "timeout"})
"""The options of a URL that belong to the connection."""

LONGEST_SECONDS = 10 * 365 * 86400.0


class RedisPlace:
    """A database of a Redis server. It connects at the first use.

    Args:
        url: ``redis://HOST:PORT/DB``, or ``rediss://…`` for TLS, which verifies the server's certificate and name.
        user: what uses it, for errors, such as ``ledger``.
        options: those of the URL, as ``split_options`` returns them: ``username`` for Redis 6's access lists;
            ``password.env`` or ``password.file``, which is read at each connection; ``ca_file`` with PEM certificates
            to trust instead of the system's; ``timeout``, the seconds to wait for the server.

    Attributes:
        name: the server and the database, for people.
        client: the client of the package redis.

    Raises:
        ConfigError: an invalid URL or option, or a password or certificates that can't be read. The error never shows
            a password.
        MissingExtraError: the package redis is not installed.
    """

    def __init__(self, url: str, user: str, options: Mapping[str, str]) -> None:
        parts = _split_redis(url, user)
        database = parts.path.removeprefix("/") or "0"
        if not database.isdecimal() or len(database) > 4:
            raise ConfigError(f"a {user}'s redis URL ends in the number of a database: redis://HOST:PORT/0")
        sources = {name: options[key] for name in ("env", "file") if (key := f"password.{name}") in options}
        if len(sources) > 1:
            raise ConfigError("password.env and password.file: want one of the two")
        username, ca_file = options.get("username"), options.get("ca_file")
        if username is not None and not sources:
            raise ConfigError(f"a {user}'s username needs a password.env or a password.file", path="username")
        if ca_file is not None and not os.access(ca_file, os.R_OK):
            raise ConfigError(f"the certificates {ca_file} cannot be read", path="ca_file")
        timeout = option_seconds(user, "timeout", options.get("timeout"), 10.0)
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise MissingExtraError(f"the {user} redis", "redis") from None
        host, port = parts.hostname or "localhost", parts.port or PORT
        self.name = f"{host}:{port}/{int(database)}"
        self.errors = (redis.RedisError, OSError)
        self._user = user
        self._not_logged_in = redis.AuthenticationError
        self._lasting = (redis.AuthenticationError, redis.exceptions.NoPermissionError, redis.DataError)
        encryption: dict[str, Any] = {"ssl": True, "ssl_ca_certs": ca_file} if parts.scheme == "rediss" else {}
        self.client: Redis = redis.Redis(
            host=host,
            port=port,
            db=int(database),
            credential_provider=_credentials(username, Secret(**sources)) if sources else None,
            retry=Retry(NoBackoff(), 1),  # for a connection that was dropped meanwhile; the caller does the others
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            health_check_interval=30,
            **encryption,
        )

    def run(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run commands in one transaction and return their answers.

        Raises:
            TopicError: the server can't be reached, or refuses a command.
        """
        if not commands:
            return []
        try:
            with self.client.pipeline(transaction=True) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
                return list(pipeline.execute())
        except self.errors as error:
            self.fail(error)

    def fail(self, error: Exception) -> NoReturn:
        """Raise an error of the client, one of ``errors``, as a TopicError without its traceback."""
        reason = (error.strerror if isinstance(error, OSError) else "") or " ".join(str(error).split())[:300]
        wants_password = isinstance(error, self._not_logged_in) or reason.startswith(("HELLO ", "NOAUTH "))
        advice = "; try again" if isinstance(error, OSError) else ""
        if wants_password:
            advice = "; check the user and the password: ?username=NAME&password.env=VARIABLE"
        raise TopicError(
            f"{self._user} redis {self.name}: {reason or type(error).__name__}{advice}",
            retryable=not (wants_password or isinstance(error, self._lasting)),
        ) from None

    def close(self) -> None:
        """Close the connections; a later use opens them again."""
        self.client.close()


def split_options(url: str, user: str, takes: Set[str]) -> tuple[str, dict[str, str]]:
    """Split a URL into its place and its options, of which ``takes`` are the known ones.

    Raises:
        ConfigError: an option is unknown, empty or there twice.
    """
    scheme, _, rest = url.partition(":")
    place, _, query = rest.partition("?")
    options: dict[str, str] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=20)
    except ValueError:
        raise ConfigError(f"{scheme}: the options can't be read; want ?name=value&name=value") from None
    for name, value in pairs:
        if name not in takes:
            known = ", ".join(sorted(takes)) or "none"
            raise ConfigError(f"a {user} in {scheme} has no option {name!r:.40}; there are: {known}")
        if name in options or not value:
            raise ConfigError(f"a {user}'s option {name} is {'there twice' if value else 'empty'}")
        options[name] = value
    return place, options


def option_seconds(user: str, name: str, text: str | None, default: float) -> float:
    """Return the seconds of an option of a URL.

    Raises:
        ConfigError: not a number of seconds from 0 to 10 years.
    """
    try:
        value = default if text is None else float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_SECONDS:
        raise ConfigError(f"a {user}'s {name} {text!r:.40} can't be; want seconds, more than 0")
    return value


def _split_redis(url: str, user: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError(f"the {user}'s redis URL can't be read; want redis://HOST:PORT/DB") from None
    if "@" in url.partition("?")[0]:
        raise ConfigError(f"a {user}'s URL has no user and no password in it; say ?username=…&password.env=NAME")
    if not url.startswith(f"{parts.scheme}://"):
        raise ConfigError(f"want redis://HOST:PORT/DB for a {user}")
    return parts


def _credentials(username: str | None, password: Secret) -> CredentialProvider:
    """Return a provider that reads the password at each connection, so that a changed one is used."""
    from redis import CredentialProvider

    class Credentials(CredentialProvider):
        def get_credentials(self) -> tuple[str] | tuple[str, str]:
            text = password.reveal("password")
            return (text,) if username is None else (username, text)

    credentials = Credentials()
    credentials.get_credentials()  # a missing secret is an error now
    return credentials
