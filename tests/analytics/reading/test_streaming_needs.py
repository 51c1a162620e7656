import pytest

from balog.analytics.reading.streaming import planner as stream_planner
from balog.common.errors import ConfigError


def test_a_spark_whose_streams_know_no_beginning_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_planner, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs Spark 4\.2 or newer, this is \d.*; load in batches$"):
        stream_planner.check_streaming()
