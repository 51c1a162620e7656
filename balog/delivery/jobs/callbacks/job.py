"""The job of a callback, as a service starts, stops and asks it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from balog.delivery.document import Callback
from balog.delivery.jobs import JobStatus, Kind
from balog.delivery.jobs.callbacks.disabling import place_of
from balog.delivery.jobs.callbacks.endpoint import Endpoint, check_callback
from balog.delivery.jobs.callbacks.pump import Pump
from balog.delivery.jobs.callbacks.switch import Switch
from balog.http.addresses import ANYWHERE, Networks
from balog.outbound.notices import ThrottledNotices
from balog.signals import signals_for_main_thread
from balog.topics import open_topics

__all__ = ["CallbackJob"]

GRACE = 5.0
"""Seconds that a stop takes at most beyond its deadline."""


class CallbackJob:
    """A callback at work, see ``Job``. It is started once.

    It has a group, threads and connections of its own, so that a dead endpoint slows nobody.

    Args:
        config: the callback.
        home_url: the home of the topics.
        say: takes one line for people: trouble, recovery, dead letters, that it is disabled.
        control: the service's place of versions, where also is kept which callbacks are disabled.
        control_options: of that place.
        networks: private ones that a callback with ``private`` may call.

    Raises:
        ConfigError: something in the config that can't be.
    """

    kind: Kind = "callback"

    def __init__(
        self,
        config: Callback,
        home_url: str,
        say: Callable[[str], None],
        control: str | None = None,
        control_options: Mapping[str, Any] | None = None,
        networks: Networks = ANYWHERE,
    ) -> None:
        check_callback(config)
        self._networks = networks
        self.name = config.name
        self.group = f"callback.{config.name}"
        self._config = config
        self._url = home_url
        self._control, self._control_options = control, control_options
        self._notices = ThrottledNotices(f"callback {config.name}", say)
        self._thread: threading.Thread | None = None
        self._is_over = False

    def check(self) -> None:
        """See whether its secrets are there, see ``Job``."""
        if not self._config.disabled:
            Endpoint(self._config, self._networks).close()

    def start(self) -> None:
        """Begin, see ``Job``.

        Raises:
            ConfigError: also a secret that is not there.
            MissingExtraError: packages are not installed.
        """
        if self._config.disabled:
            return
        with ExitStack() as stack:
            self._endpoint = Endpoint(self._config, self._networks)
            stack.callback(self._endpoint.close)
            self._switch = Switch(
                self._config, place_of(self._control, self._url), self._notices, self._control_options
            )
            stack.callback(self._switch.close)
            topics = stack.enter_context(open_topics(self._url))
            topic = stack.enter_context(topics.topic(self._config.source))
            self._pump = Pump(self._config, topic, self.group, self._endpoint, self._switch, self._notices)
            self._closing = stack.pop_all()
        self._thread = threading.Thread(target=self._run, name=f"balog {self.group}", daemon=True)
        with signals_for_main_thread():
            self._thread.start()

    def stop(self, deadline: float) -> None:
        """Begin nothing more and wait at most ``deadline`` seconds for requests under way; the rest is given back."""
        self._is_over = True
        if self._thread is not None:
            self._pump.stop(time.monotonic() + deadline)
            self._thread.join(deadline + GRACE)

    def status(self) -> JobStatus:
        """Tell how it is, see ``Job``."""
        if self._thread is None:
            is_disabled = self._config.disabled
            return JobStatus(name=self.name, kind=self.kind, state="disabled" if is_disabled else "stopped")
        pump = self._pump
        is_alive = self._thread.is_alive() and not self._is_over
        trouble = pump.topic_trouble or pump.trouble
        if is_alive:
            trouble = self._switch.trouble or trouble or self._endpoint.trouble
        return JobStatus(
            name=self.name,
            kind=self.kind,
            state="disabled" if is_alive and self._switch.is_off else "running" if is_alive else "stopped",
            taken=pump.taken,
            done=pump.done,
            failed=pump.failed,
            dead=pump.dead,
            lag=pump.lag,
            trouble=trouble,
        )

    def _run(self) -> None:
        with self._closing:
            self._pump.run()
