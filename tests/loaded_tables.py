"""Tables of ``balog load``, for tests of what reads them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from balog.analytics.tables import open_store
from balog.analytics.tables.loader import LoadOptions, LoadSummary, load


def load_tables(spark: Any, place: Path | str, paths: Iterable[Path | str], **options: Any) -> LoadSummary:
    """Load files into the tables at a place, by a store that was just opened."""
    store = open_store(spark, str(place))
    with store.writing():
        return load(spark, store, list(map(str, paths)), LoadOptions(**options))
