"""Log records and metrics of balog to an OTLP receiver: the sink ``otlp``."""

from balog_otlp.sink import OtlpSink, OtlpSinkConfig

__all__ = ["OtlpSink", "OtlpSinkConfig"]
