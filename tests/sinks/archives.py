"""What the tests of archives share: events of a day, and writers that are killed."""

import os
from datetime import datetime, timedelta, timezone

from balog.sinks import Delivery
from tests.stand_ins.batches import batch_of


def deliveries(count: int, day: int = 20) -> list[Delivery]:
    start = datetime(2026, 11, day, tzinfo=timezone.utc)
    times = [start + timedelta(minutes=n % 60) for n in range(count)]
    return [batch_of({"n": n, "pad": os.urandom(50).hex()}, timestamp=time)[0] for n, time in enumerate(times)]
