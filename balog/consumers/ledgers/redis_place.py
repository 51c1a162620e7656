"""A database of a Redis server: how a URL names it, how it is reached, and what its errors say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NoReturn

from balog.common.errors import ConfigError, MissingExtraError, TopicError
from balog.common.secrets import Secret
from balog.topics.url import split_query

if TYPE_CHECKING:
    from redis import CredentialProvider, Redis

REDIS_OPTIONS = frozenset({"username", "password.env", "password.file"})
"""The options of a URL that belong to the connection."""

TIMEOUT = 10.0
"""Seconds to wait for the server."""

_PLACE = re.compile(r"rediss?://[^/@\s]*(?:/\d{0,4})?", re.ASCII)


class RedisPlace:
    """A database of a Redis server. It connects at the first use.

    Args:
        url: ``redis://HOST:PORT/DB``, or ``rediss://…`` for TLS, which verifies the server's certificate and name with
            the system's certificates or those that ``SSL_CERT_FILE`` names.
        user: what uses it, for errors, such as ``ledger``.
        options: those of the URL, as ``split_options`` returns them: ``username`` for Redis 6's access lists;
            ``password.env`` or ``password.file``, which is read at each connection.

    Attributes:
        name: the server and the database, for people.
        client: the client of the package redis.

    Raises:
        ConfigError: an invalid URL or option, or a password that can't be read. The error never shows a password.
        MissingExtraError: the package redis is not installed.
    """

    def __init__(self, url: str, user: str, options: Mapping[str, str]) -> None:
        base_url = url.partition("?")[0]
        if "@" in base_url:
            raise ConfigError(f"a {user}'s URL has no user and no password in it; say ?username=…&password.env=NAME")
        if not _PLACE.fullmatch(base_url):
            raise ConfigError(f"expected redis://HOST:PORT/DB for a {user}, where DB is the number of a database")
        sources = {name: options[key] for name in ("env", "file") if (key := f"password.{name}") in options}
        if len(sources) > 1:
            raise ConfigError("password.env and password.file: expected one of the two")
        username = options.get("username")
        if username is not None and not sources:
            raise ConfigError(f"a {user}'s username needs a password.env or a password.file", path="username")
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise MissingExtraError(f"the {user} redis", "redis") from None
        self.errors = (redis.RedisError, OSError)
        self._user = user
        self._not_logged_in = redis.AuthenticationError
        self._lasting = (redis.AuthenticationError, redis.exceptions.NoPermissionError, redis.DataError)
        credentials = _credentials(username, Secret(**sources)) if sources else None
        try:
            self.client: Redis = redis.Redis.from_url(
                base_url,
                credential_provider=credentials,
                retry=Retry(NoBackoff(), 1),  # for a connection that was dropped meanwhile; the caller does the others
                socket_timeout=TIMEOUT,
                socket_connect_timeout=TIMEOUT,
                health_check_interval=30,
            )
        except ValueError:
            raise ConfigError(f"the {user}'s redis URL can't be read; expected redis://HOST:PORT/DB") from None
        known = self.client.connection_pool.connection_kwargs
        self.name = f"{known.get('host', 'localhost')}:{known.get('port', 6379)}/{known.get('db', 0)}"

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
    location, _, query = rest.partition("?")
    options = split_query(query, scheme)
    for name in options:
        if name not in takes:
            known = ", ".join(sorted(takes)) or "none"
            raise ConfigError(f"a {user} in {scheme} has no option {name!r:.40}; there are: {known}")
    return location, options


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
