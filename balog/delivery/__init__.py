"""Delivery of events to sinks: one worker thread per sink, with a queue, retries, a spool and dead letters.

``Dispatcher`` is the entry point; a slow or failing sink does not delay the others.
"""

from balog.delivery.dispatcher import Dispatcher

__all__ = ["Dispatcher"]
