"""The path that loggers, handlers and metrics share, from a call's level, channel and payload to an event's bytes.

``configuration`` installs a ``recorder``. ``context`` describes the process. ``values`` makes JSON of any value and
checks payloads, ``rendering`` makes an event's bytes, and ``outputs`` write them. ``exit_hooks`` deliver queued events
at the end.
"""
