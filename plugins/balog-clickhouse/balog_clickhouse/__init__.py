"""Events of balog as rows of ClickHouse: the sink ``clickhouse``."""

from balog_clickhouse.sink import ClickHouseSink, ClickHouseSinkConfig

__all__ = ["ClickHouseSink", "ClickHouseSinkConfig"]
