"""The path that loggers, handlers and metrics share, from a call's level, channel and payload to an event's bytes.

``configuration`` installs a ``recorder``. ``context`` describes the process. ``encoding``, ``exceptions`` and
``fallback_encoding`` make JSON of any values. ``validation`` checks payloads. ``exit_hooks`` deliver
queued events at the end.
"""
