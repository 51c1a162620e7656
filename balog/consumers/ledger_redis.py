"""A ledger in Redis, shared by the machines of a team."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from balog.consumers.ledger import DEFAULT_WINDOW, LedgerEntry
from balog.errors import ConfigError, MissingExtraError, TopicError
from balog.secrets import Secret

if TYPE_CHECKING:
    from redis import CredentialProvider, Redis

_PIPELINE = 1000
_PORT = 6379


class RedisLedger:
    """A hash for each event and group, ``balog:ledger:GROUP:EVENT``, with its own expiry.

    The server's settings decide how durable an entry is when ``record`` returns: ``appendfsync always`` writes it to
    the disk first, ``everysec`` may lose a second, and a server without an append-only file loses all entries when it
    dies. After a loss, a handler can run twice for an event. Redis must not evict (``maxmemory-policy noeviction``).

    Args:
        host: the server.
        database: the number of the database.
        window: seconds that an entry is kept at least; a later entry for the same event restarts the time.
        username: for Redis 6's access lists.
        password: a reference to the secret, read at each connection.
        is_encrypted: use TLS and verify the server's certificate and name.
        ca_file: PEM certificates to trust instead of the system's.
        timeout: seconds to wait for the server.

    Raises:
        MissingExtraError: the package redis is not installed.
        ConfigError: the password or the certificates can't be read.
    """

    def __init__(
        self,
        host: str,
        port: int = _PORT,
        database: int = 0,
        window: float = DEFAULT_WINDOW,
        *,
        username: str | None = None,
        password: Secret | None = None,
        is_encrypted: bool = False,
        ca_file: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise MissingExtraError("the ledger redis", "redis") from None
        if username is not None and password is None:
            raise ConfigError("a ledger's username needs a password.env or a password.file", path="username")
        if ca_file is not None and not os.access(ca_file, os.R_OK):
            raise ConfigError(f"the certificates {ca_file} cannot be read", path="ca_file")
        self.place = f"{host}:{port}/{database}"
        self._errors = redis.RedisError
        self._lasting = (redis.AuthenticationError, redis.exceptions.NoPermissionError, redis.DataError)
        self._window = max(1, math.ceil(window))
        options: dict[str, Any] = {"ssl": True, "ssl_ca_certs": ca_file} if is_encrypted else {}
        credentials = None if password is None else _credentials(username, password)
        self._client: Redis = redis.Redis(
            host=host,
            port=port,
            db=database,
            credential_provider=credentials,
            retry=Retry(
                NoBackoff(), 1
            ),  # for a connection that was dropped meanwhile; the engine does the other retries
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            health_check_interval=30,
            **options,
        )

    def __repr__(self) -> str:
        return f"RedisLedger({self.place!r}, window={self._window})"

    def known(self, group: str, events: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the entries of events, a thousand per round trip; see :class:`balog.consumers.ledger.Ledger`."""
        found: dict[str, dict[str, str]] = {}
        for start in range(0, len(events), _PIPELINE):
            some = events[start : start + _PIPELINE]
            for event, fields in zip(some, self._run([("HGETALL", _key(group, event)) for event in some])):
                if fields:
                    found[event] = {_text(name): _text(reason) for name, reason in fields.items()}
        return found

    def record(self, group: str, entries: Sequence[LedgerEntry], *, durable: bool = True) -> None:
        """Write entries; all of one event, or none of them."""
        by_event: dict[str, dict[str, str]] = {}
        for entry in entries:
            by_event.setdefault(entry.event, {})[entry.consumer] = entry.gave_up
        commands: list[tuple[Any, ...]] = []
        for event, reasons in by_event.items():
            key = _key(group, event)
            pairs = [part.encode("utf-8", "backslashreplace") for pair in reasons.items() for part in pair]
            commands += [("HSET", key, *pairs), ("EXPIRE", key, self._window)]
        for start in range(0, len(commands), _PIPELINE):
            self._run(commands[start : start + _PIPELINE])

    def close(self) -> None:
        """Close the connections; a later use opens them again."""
        self._client.close()

    def _run(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        if not commands:
            return []
        try:
            with self._client.pipeline(transaction=True) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
                return list(pipeline.execute())
        except self._errors as error:
            raise self._explain(error) from None
        except OSError as error:
            raise TopicError(f"ledger redis {self.place}: {error.strerror or error}; try again") from None

    def _explain(self, error: Exception) -> TopicError:
        text = " ".join(str(error).split())[:300] or type(error).__name__
        return TopicError(f"ledger redis {self.place}: {text}", retryable=not isinstance(error, self._lasting))


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


def _key(group: str, event: str) -> str:
    return f"balog:ledger:{quote(group, safe='')}:{event}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
