"""What the tests of catalogs follow: a folder that grows, into a place of its own, stopped in between."""

import json
import random
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from balog.analytics.tables import open_store, open_tables
from balog.analytics.tables.follower import follow
from balog.analytics.tables.loader import LoadOptions
from balog.analytics.tables.store import TableError
from benchmarks.generate import run as generate


def follows(spark: SparkSession, loaded: str, folder: Path) -> Any:
    """Follow a folder, and again after it has grown.

    Args:
        spark: the session.
        loaded: another place in the same catalog, beside which the new one is.
        folder: where the events go.
    """
    place = loaded.replace("loads", "follows")
    dumps = folder / "growing"
    dumps.mkdir()
    lines = [line for seed in (6, 16) for line in generate(random.Random(seed), 50)]
    told: dict[str, Any] = {"events": [], "recounted": [], "commits": []}

    def until(count: int, extra: tuple[str, bytes] | None) -> None:
        store = open_store(spark, place)
        deadline = time.monotonic() + 300
        rest = [extra] if extra is not None else []

        def is_over() -> bool:
            try:
                have = open_tables(spark, place).frame("events").count()
            except TableError:  # there are none yet, or their first batch is being appended
                have = 0
            if have and rest:
                name, text = rest.pop()
                with (dumps / name).open("ab", buffering=0) as out:  # whole lines at once
                    out.write(text)
            return have >= count or time.monotonic() > deadline

        with store.writing():
            follow(spark, store, [str(dumps)], LoadOptions(), is_over, every=timedelta(seconds=0.1))
        told["events"].append(open_tables(spark, place).frame("events").count())
        told["recounted"].append(
            len({json.loads(line)["header"]["id"] for path in dumps.iterdir() for line in path.open()})
        )
        told["commits"].append(store.loaded().commits)

    (dumps / "a.jsonl").write_bytes(b"".join(lines[:20]))
    until(40, ("a.jsonl", b"".join(lines[20:40])))  # lines that are added while it follows
    (dumps / "b.jsonl").write_bytes(b"".join(lines[30:90]))  # ten of them again
    until(90, None)
    tables = open_tables(spark, place)
    kinds = Counter(json.loads(line)["payload"]["cls_type"] for line in lines[:90])
    told["types"] = sorted((kind, tables.frame(kind).count()) for kind in kinds)
    told["plain"] = sorted(kinds.items())
    return told
