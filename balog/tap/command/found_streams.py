"""The streams that a run needs and the tap does not declare: those of the catalog, or those that the source has."""

from __future__ import annotations

from typing import Any

from balog.common.text import suggest
from balog.tap.catalog import Catalog
from balog.tap.definition import TapDefinition
from balog.tap.errors import SyncError
from balog.tap.streams import DiscoveryContext, Providers, StreamFinder


def find_streams(
    declared: TapDefinition,
    finder: StreamFinder,
    providers: Providers,
    log: Any,
    given: Catalog | None = None,
    source: str = "",
) -> tuple[TapDefinition, dict[str, SyncError]]:
    """Return the tap with the streams of ``@tap.discover``: all, or those that a catalog selects.

    Args:
        declared: the tap.
        finder: its ``finder``.
        providers: make the arguments ``client`` and ``config``.
        log: the tap's logger.
        given: the user's catalog; None for all streams.
        source: the catalog's file, for errors.

    Returns:
        The tap, and the errors by name: that of the source, and one for each stream that is selected and was not found.
    """
    tap = declared.extensible()
    wanted: frozenset[str] | None = None
    if given is not None:
        entries = [entry for entry in given if entry.tap_stream_id not in declared.streams]
        selected = {entry.tap_stream_id for entry in entries if entry.is_selected}
        described = [stream for entry in entries if (stream := finder.stream_of(entry)) is not None]
        if selected <= {stream.name for stream in described}:
            for stream in described if selected else ():
                tap.add(stream)
            return tap, {}
        wanted = frozenset(selected)
    context = DiscoveryContext(log, wanted)
    failure = finder.find(tap.streams, {**providers, "context": lambda: context})
    if failure is not None:
        return tap, {failure.stream: failure}
    if wanted is None:
        for name in tap.unused_names():
            log.warning(f"There is no stream {name!r}, which a declaration names{suggest(name, tap.streams)}")
        return tap, {}
    reason = f"it is selected in {source}, but @tap.discover does not find it; run --discover again"
    return tap, {name: SyncError(name, reason) for name in sorted(wanted - tap.streams.keys())}
