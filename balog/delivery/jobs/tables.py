"""Tables that the service writes: the topics' events, each once, in ClickHouse or YTsaurus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import asdict

from balog.consumers.forwarder import SinkConsumer
from balog.delivery.document import AnyTable, ClickHouseTable, LoadedTable, YTsaurusTable
from balog.delivery.jobs.engine_job import EngineJob
from balog.errors import ConfigError
from balog.expressions import Expression
from balog.http import check_url
from balog.http.addresses import ANYWHERE, Networks
from balog.http.guarded_pool import Cutter, open_guarded_pool
from balog.sinks import ClickHouseSinkConfig, SinkConfig, YTsaurusSinkConfig
from balog.sinks.clickhouse import ClickHouseSink

__all__ = ["TableJob", "check_table", "make_table_sink"]


def make_table_sink(
    config: ClickHouseTable | YTsaurusTable, registry: str | None = None, options: Mapping[str, Any] | None = None
) -> SinkConfig:
    """Return the sink that writes a table's events.

    Args:
        registry: the place of the schemas that ClickHouse's columns are made of; balog's own types if none.
        options: of that place.
    """
    given = asdict(config)
    for member in ("name", "sources"):
        del given[member]
    if isinstance(config, ClickHouseTable):
        return ClickHouseSinkConfig(**given, registry=registry, registry_options=dict(options or {}))
    return YTsaurusSinkConfig(**given)


def check_table(config: AnyTable) -> None:
    """Find what can't be, short of what only a service has, such as secrets.

    Raises:
        ConfigError: ``path`` is the table's member.
    """
    twice = next((at for at, topic in enumerate(config.sources) if topic in config.sources[:at]), None)
    if twice is not None:
        raise ConfigError("is there twice", path=f"sources[{twice}]")
    if isinstance(config, LoadedTable):
        return
    if config.where is not None:
        try:
            Expression(config.where)
        except ConfigError as error:
            raise ConfigError(error.reason, path="where") from None
    if isinstance(config, ClickHouseTable):
        check_url(config.url)
    elif "@" in config.proxy:
        raise ConfigError("has credentials in it; give a token", path="proxy")


class _GuardedClickHouse:
    """ClickHouse's sink whose connections go to public addresses and listed networks only; see ``SinkConfig``."""

    def __init__(self, config: ClickHouseSinkConfig, networks: Networks) -> None:
        self.name, self.where, self.batch, self.retry = config.name, config.where, config.batch, config.retry
        self._config = config
        self._networks = networks

    def build(self) -> ClickHouseSink:
        config = self._config
        check_url(config.url)
        pool = open_guarded_pool(config.url, config.timeout, config.ca_file, networks=self._networks, cutter=Cutter())
        return config.build(pool)


def _guarded(config: SinkConfig, networks: Networks) -> SinkConfig:
    # YTsaurus' client brings its own connections, to whatever its proxy names: the operator lists such a proxy by name.
    return _GuardedClickHouse(config, networks) if isinstance(config, ClickHouseSinkConfig) else config


class TableJob(EngineJob):
    """A table's events on their way into it, see :class:`balog.delivery.jobs.Job`.

    The group is ``table.NAME``. An event is acked in its topic once its row is there; what the other side refuses for
    good becomes a dead letter of the topic, and while the other side is away its events wait in the topic.

    Args:
        config: the table.
        home_url: the home of its topics.
        say: takes one line for people.
        registry: the place of the schemas that ClickHouse's columns are made of.
        registry_options: of that place.
        networks: private ones that may be connected to.

    Raises:
        ConfigError: the sink can't be built; ``path`` is the table's member.
        MissingExtraError: its packages are not installed.
    """

    def __init__(
        self,
        config: ClickHouseTable | YTsaurusTable,
        topics_url: str,
        say: Callable[[str], None],
        registry: str | None = None,
        registry_options: Mapping[str, Any] | None = None,
        networks: Networks = ANYWHERE,
    ) -> None:
        self._sink = _guarded(make_table_sink(config, registry, registry_options), networks)
        super().__init__("table", config.name, topics_url, say, batch=self._sink.batch.events)
        self._sources = config.sources

    def consumers(self) -> list[SinkConsumer]:
        """Return one of each topic, called as its topic."""
        return [SinkConsumer(self._sink, topic, topic, self.report) for topic in self._sources]
