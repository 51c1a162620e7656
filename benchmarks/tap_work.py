"""The stream that every tap of `benchmarks.tap` has: ten fields, records in memory. On the standard library alone."""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "email": {"type": "string"},
        "name": {"type": ["null", "string"]},
        "updated_at": {"type": "string", "format": "date-time"},
        "amount": {"type": ["null", "number"]},
        "currency": {"type": ["null", "string"]},
        "is_active": {"type": ["null", "boolean"]},
        "note": {"type": ["null", "string"]},
        "score": {"type": ["null", "number"]},
        "address": {
            "type": ["null", "object"],
            "properties": {"city": {"type": ["null", "string"]}, "zip": {"type": ["null", "string"]}},
        },
    },
}


def records(count: int) -> list[dict[str, Any]]:
    """Give records in ascending order of ``updated_at``, the same each time."""
    random_ = random.Random(1)
    return [
        {
            "id": number,
            "email": f"person{number}@example.com",
            "name": f"Some Body {number % 97}",
            "updated_at": f"2026-11-{1 + number // 86_400 % 20:02d}T{number // 3600 % 24:02d}:{number // 60 % 60:02d}"
            f":{number % 60:02d}.000000Z",
            "amount": round(random_.random() * 1000, 2),
            "currency": "EUR",
            "is_active": number % 3 == 0,
            "note": None,
            "score": round(random_.random(), 4),
            "address": {"city": "Luxembourg", "zip": "L-1234"},
        }
        for number in range(count)
    ]


@contextmanager
def timed() -> Iterator[None]:
    """Write the inside's seconds of a core to the file that the variable ``BENCHMARK_SECONDS`` names."""
    began = time.process_time()
    try:
        yield
    finally:
        took = time.process_time() - began
        with open(os.environ["BENCHMARK_SECONDS"], "w") as file:
            file.write(str(took))
