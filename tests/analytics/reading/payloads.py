"""Payloads for property tests of every form."""

from hypothesis import strategies as st

_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9).map(lambda x: round(x, 3)) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
PAYLOADS = st.dictionaries(_TEXTS.filter(lambda key: key != "cls_type"), _VALUES, max_size=4)
"""Any JSON object."""
