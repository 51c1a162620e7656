import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")


def test_the_benchmark_reads_every_form_and_counts_the_events_in_each() -> None:
    from benchmarks.forms import main

    done = CliRunner().invoke(main, ["--events", "300", "--rounds", "1"])
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) == 3 + 11
