"""Every event into an archive that ``balog report`` and ``spark.read.format("balog")`` read. The pattern: a batch.

``balog consume consumers.archive --topics URL --set archive=FOLDER``, or ``archive=s3://BUCKET/PATH`` and the like.

The handler gets a list, and when it returns the engine acks all of it: so by then all of it must be safe. The store
sink has written and synced it to a file on disk; files are finished when they are 5 minutes old or the run is over,
and uploaded then. A process that is killed between that and the ack leaves events twice, with the same ids.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from balog import Event
from balog.consumers import Halt, consumer_config
from balog.consumers.sink_adapter import SinkAdapter
from balog.sinks.store import StoreSinkConfig

TOPIC = "singer-events"


@cache
def store(place: str) -> SinkAdapter:
    """Give the archive at a folder or URL, one for this process."""
    if not place:
        raise Halt("consumers.archive needs --set archive=FOLDER, or a URL such as archive=s3://BUCKET/PATH")
    is_url = "://" in place
    return SinkAdapter(
        StoreSinkConfig(topic=TOPIC, url=place if is_url else None, path=None if is_url else place, max_age=300)
    )


@consumer_config(topic=TOPIC, batch=(1000, 2.0), concurrency=1)
def archive(settings: dict[str, Any], events: list[Event]) -> None:
    """Append events to ``<archive>/singer-events/date=YYYY-MM-DD/…``, by the date of each."""
    store(settings.get("archive", "")).send(events)
