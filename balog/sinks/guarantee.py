"""What a sink guarantees, as an attribute of its config class: the source of the table in the docs."""

from __future__ import annotations

from typing import Literal, NamedTuple


class SinkGuarantee(NamedTuple):
    """What a sink guarantees for the events that it takes. Each text is a clause without a full stop.

    Attributes:
        delivery: ``at least once``: a fault can repeat an event. ``at most once``: a fault can lose one.
        safe_once: when an event of a batch counts as delivered.
        request: what one request or one write carries.
        repeats: why a repeated event is harmless; empty if it is stored or counted again.
        not_retried: errors that make an event a dead letter. All other errors are retried.
        option: the option of the config that this guarantee is for, or the scheme of its ``url``; empty for all others.
        extra: the extra that the sink needs.
    """

    delivery: Literal["at least once", "at most once"]
    safe_once: str
    request: str
    repeats: str = ""
    not_retried: str = "400, 413, 415, 422"
    option: str = ""
    extra: str = ""
