"""What workers look up in contexts."""

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from balog.analytics.tables.deriving import _looked_up

pairs = st.tuples(st.sampled_from("abc"), st.none() | st.sampled_from("xyz"))
maps = st.lists(st.none() | st.lists(pairs, max_size=4))


@settings(deadline=None)
@given(maps, st.integers(0, 5), st.integers(0, 5))
def test_a_key_is_looked_up_in_every_map_also_of_a_slice(data: list[Any], skip: int, most: int) -> None:
    whole = pa.array(data, pa.map_(pa.string(), pa.string()))
    for some in (whole, whole.slice(min(skip, len(whole)), most)):
        expected = [next((value for key, value in row or [] if key == "a"), None) for row in some.to_pylist()]
        assert _looked_up(some, "a").to_pylist() == expected
