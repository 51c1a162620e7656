import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.broker.monitor import Neighbour, Row, in_pipe_order, rates
from balog.broker.status import PipeStage


def stage(seconds=10.0, stdin=None, stdout=None, pid=1, **stats):
    return PipeStage(pid=pid, stage="broker", started="x", seconds=seconds, stdin=stdin, stdout=stdout, stats=stats)


class TestRates:
    def test_between_two_looks(self):
        before = stage(10.0, bytes=1000, lines=10, read_wait=1.0, write_wait=2.0)
        row = rates(before, stage(12.0, bytes=5000, lines=30, read_wait=1.5, write_wait=3.5))
        assert (row.bytes, row.bytes_per_second) == (5000, 2000)
        assert (row.records, row.records_per_second) == (30, 10)
        assert (row.reading, row.writing, row.waiting) == (0.25, 0.75, "writing")

    def test_of_the_whole_life_at_the_first_look(self):
        row = rates(None, stage(10.0, bytes=1000, records=50, read_wait=9.0, write_wait=0.5))
        assert (row.bytes_per_second, row.records_per_second, row.waiting) == (100, 5, "reading")

    @pytest.mark.parametrize(
        ("read", "write", "size", "waiting"),
        [(0.01, 0.02, 100, "neither"), (0.0, 0.0, 0, None), (0.5, 0.5, 0, "reading"), (0.0, 0.11, 0, "writing")],
    )
    def test_the_waiting_side(self, read, write, size, waiting):
        assert rates(None, stage(1.0, bytes=size, read_wait=read, write_wait=write)).waiting == waiting

    def test_what_is_not_known_is_not_zero(self):
        row = rates(None, stage(10.0, logs=3))
        assert (row.bytes, row.bytes_per_second, row.records_per_second, row.waiting) == (None, None, None, None)

    def test_no_time_between_two_looks_is_no_rate(self):
        assert rates(stage(5.0, bytes=1), stage(5.0, bytes=2)).bytes_per_second is None

    def test_shares_are_at_most_all_and_rates_at_least_none(self):
        row = rates(stage(1.0, bytes=9, read_wait=0.0), stage(2.0, bytes=3, read_wait=1.2, write_wait=0.0))
        assert (row.reading, row.bytes_per_second) == (1.0, 0.0)

    @given(
        st.dictionaries(
            st.sampled_from(["bytes", "records", "read_wait", "sinks"]), st.none() | st.text() | st.integers()
        )
    )
    def test_figures_of_any_kind_make_a_row(self, stats):
        assert isinstance(rates(stage(1.0, **stats), stage(2.0, **stats)), Row)

    def test_a_label_moves_no_cursor(self):
        row = rates(None, PipeStage(pid=1, stage="run", label="a\x1b[2Jb\n", started="x", seconds=1))
        assert row.label == "a?[2Jb?"


def ordered(stages, others=()):
    rows = [Row(stage=item.stage, pid=item.pid) for item in stages]
    return [(row.pipeline, row.pid) for row in in_pipe_order(stages, rows, list(others))]


class TestOrder:
    def test_the_order_of_the_pipes_not_of_the_begin(self):
        stages = [stage(pid=1, stdin=30), stage(pid=2, stdin=20, stdout=30), stage(pid=3, stdin=10, stdout=20)]
        assert ordered(stages) == [(1, 3), (1, 2), (1, 1)]

    def test_other_programs_stand_between(self):
        stages = [stage(pid=1, stdin=30), stage(pid=2, stdin=10, stdout=20)]
        others = [
            Neighbour(pid=7, name="target", stdin=20, stdout=30),
            Neighbour(pid=8, name="tap", stdin=None, stdout=10),
        ]
        assert ordered(stages, others) == [(1, 8), (1, 2), (1, 7), (1, 1)]

    def test_two_pipelines(self):
        stages = [stage(pid=1, stdin=10), stage(pid=2, stdout=20), stage(pid=3, stdout=10), stage(pid=4, stdin=20)]
        assert ordered(stages) == [(1, 3), (1, 1), (2, 2), (2, 4)]

    @given(st.lists(st.tuples(st.none() | st.integers(1, 4), st.none() | st.integers(1, 4)), max_size=6))
    def test_any_plumbing_rings_too_gives_every_row_once(self, pipes):
        stages = [stage(pid=i + 1, stdin=a, stdout=b) for i, (a, b) in enumerate(pipes)]
        assert sorted(pid for _, pid in ordered(stages)) == list(range(1, len(pipes) + 1))
