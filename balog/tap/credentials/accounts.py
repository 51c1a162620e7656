"""Several accounts of one source, each with a client and a credential of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from balog.tap.errors import SourceError, TapError
from balog.tap.patterns.partitions import for_each

_MAX_NAMED = 10


class SourceAccount:
    """One account.

    Attributes:
        name: its name in the state, in logs and in errors.
        config: its part of the config.
    """

    def __init__(self, name: str, config: Any, sign_in: Callable[[Any], Any]) -> None:
        self.name = name
        self.config = config
        self._sign_in = sign_in
        self._lock = threading.Lock()
        self._client: Any = None

    @property
    def client(self) -> Any:
        """Its client, made on first use."""
        with self._lock:
            if self._client is None:
                self._client = self._sign_in(self.config)
            return self._client

    def __repr__(self) -> str:
        return f"<Account {self.name}>"


class Accounts:
    """The accounts of a config, in order; what ``@tap.client`` returns for them.

    ::

        @tap.client
        def accounts(config):
            return Accounts(config["accounts"], lambda account: Client(URL, auth=header("X-Api-Key", account["key"])))

        @tap.stream("orders", key_properties=["account", "id"], replication_key="changed_at", is_sorted=False)
        def orders(client, context):
            def read(account, bookmark):
                for page in account.client.orders(bookmark):
                    yield [{"account": account.name, **order} for order in page]

            yield from client.records(context, read)

    Args:
        configs: one mapping for each account, of the tap's config.
        sign_in: makes an account's client from its mapping.
        key: the field with the account's name.

    Raises:
        TapError: there is no account, one has no name, or two have the same.
    """

    def __init__(
        self, configs: Sequence[Mapping[str, Any]], sign_in: Callable[[Any], Any], *, key: str = "name"
    ) -> None:
        self._accounts: dict[str, SourceAccount] = {}
        if not isinstance(configs, (list, tuple)) or not all(isinstance(config, Mapping) for config in configs):
            raise TapError("the accounts of the config: want a list of objects")
        for number, config in enumerate(configs):
            name = config.get(key)
            if not isinstance(name, str) or not name:
                raise TapError(f"account {number} of the config has no {key!r}")
            if name in self._accounts:
                raise TapError(f"the config has two accounts with the {key} {name!r}")
            self._accounts[name] = SourceAccount(name, config, sign_in)
        if not self._accounts:
            raise TapError("the config has no accounts")

    def __iter__(self) -> Iterator[SourceAccount]:
        return iter(self._accounts.values())

    def __getitem__(self, name: str) -> SourceAccount:
        return self._accounts[name]

    def __len__(self) -> int:
        return len(self._accounts)

    def records(self, context: Any, read: Callable[[SourceAccount, Any], Iterable[Any]]) -> Iterator[Any]:
        """Yield the records of all accounts. If one fails, the others are read first.

        With a replication key, each account has a bookmark of its own (see ``balog.tap.patterns.for_each``), and that
        of an account that failed stays as it was.

        Args:
            context: the stream's context.
            read: returns the records, or pages of them, of an account from a bookmark on; None for full tables.

        Raises:
            SourceError: accounts that failed, after all have been read.
        """
        failures: list[tuple[str, SourceError]] = []
        if context.entry.replication_key is None:
            for account in self:
                yield from _until_failure(account, read(account, None), context, failures)
        else:
            for partition in for_each(context, self._accounts):
                account = self._accounts[partition.item]
                found = partition.watch(read(account, partition.bookmark))
                count = len(failures)
                yield from _until_failure(account, found, context, failures)
                if len(failures) > count:
                    partition.forget()
        if failures:
            named = "; ".join(f"{name}: {error.reason}" for name, error in failures[:_MAX_NAMED])
            raise SourceError(
                f"{len(failures)} of {len(self)} accounts failed: {named}",
                retryable=any(error.retryable for _, error in failures),
            )


def _until_failure(
    account: SourceAccount, records: Iterable[Any], context: Any, failures: list[tuple[str, SourceError]]
) -> Iterator[Any]:
    try:
        yield from records
    except SourceError as error:
        context.log.warning(
            f"account {account.name}: {error.reason}; the other accounts are read", account=account.name
        )
        failures.append((account.name, error))
