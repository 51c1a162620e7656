import decimal
import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.analytics.reading.variant import encode

VariantUtils = pytest.importorskip("pyspark.sql.variant_utils").VariantUtils

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=100),
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=8)
    ),
    max_leaves=30,
)


def decoded(text: str | bytes) -> Any:
    value, metadata = encode(text)
    return VariantUtils.to_python(value, metadata)


@given(JSON)
def test_what_is_encoded_is_what_spark_decodes(document: Any) -> None:
    assert decoded(json.dumps(document)) == document


@pytest.mark.parametrize("count", [255, 256, 70_000])
def test_large_objects_arrays_and_strings_use_wide_numbers(count: int) -> None:
    document = {"list": list(range(count)), "keys": {f"k{n}": n for n in range(count)}, "text": "é" * count}
    assert decoded(json.dumps(document)) == document


def test_fields_are_listed_by_name_so_that_readers_can_search_them() -> None:
    names = [f"k{n}" for n in range(100)]
    value, metadata = encode(json.dumps(dict.fromkeys(names, 1)))
    assert list(VariantUtils.to_python(value, metadata)) == sorted(names)


def test_integers_beyond_64_bits_stay_exact_up_to_38_digits() -> None:
    for text in ("12345678901234567890", "123456789012345678901234567890", "-" + "9" * 38):
        value, metadata = encode(text)
        with decimal.localcontext(prec=38):
            assert VariantUtils.to_python(value, metadata) == int(text)
    assert decoded("9" * 39) == 1e39


def test_numbers_that_no_double_holds_are_infinite_not_an_error() -> None:
    assert math.isinf(decoded("1e999"))
    assert decoded("-" + "1" * 400) == -math.inf


def test_of_a_key_that_comes_twice_the_last_value_counts() -> None:
    assert decoded('{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}


@pytest.mark.parametrize("text", ["", "{", '{"a":1,}', "NaN", b'"\xff"'])
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        encode(text)
