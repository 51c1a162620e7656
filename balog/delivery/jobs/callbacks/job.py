"""The job of a callback."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from balog.delivery.document import Callback
from balog.delivery.jobs import JobStatus, Kind
from balog.delivery.jobs.callbacks.callback_loop import CallbackLoop
from balog.delivery.jobs.callbacks.disabled import place_of
from balog.delivery.jobs.callbacks.endpoint import Endpoint, check_callback
from balog.delivery.jobs.callbacks.switch import Switch
from balog.http.addresses import ANYWHERE, Networks
from balog.outbound.notices import ThrottledNotices
from balog.signals import signals_for_main_thread
from balog.topics import open_topics

__all__ = ["CallbackJob"]

GRACE = 5.0
"""Seconds that a stop takes at most beyond its deadline."""


class CallbackJob:
    """Runs a callback, see ``Job``. It can be started once.

    It has its own group, threads and connections, so that a dead endpoint slows no other callback.

    Args:
        config: the callback.
        home_url: the backend of the topics.
        say: called with one line for the operator: errors, recovery, dead letters, and when it is disabled.
        control: the service's folder of document versions, which also holds the disabled callbacks.
        control_options: options of that folder's file system.
        networks: private networks that a callback with ``private`` may call.

    Raises:
        ConfigError: an invalid config.
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
        """Check that its secrets exist, see ``Job``."""
        if not self._config.disabled:
            Endpoint(self._config, self._networks).close()

    def start(self) -> None:
        """Start, see ``Job``.

        Raises:
            ConfigError: an invalid config, or a missing secret.
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
            self._loop = CallbackLoop(self._config, topic, self.group, self._endpoint, self._switch, self._notices)
            self._closing = stack.pop_all()
        self._thread = threading.Thread(target=self._run, name=f"balog {self.group}", daemon=True)
        with signals_for_main_thread():
            self._thread.start()

    def stop(self, deadline: float) -> None:
        """Send no further request, wait at most ``deadline`` seconds for those in flight, and release the rest."""
        self._is_over = True
        if self._thread is not None:
            self._loop.stop(time.monotonic() + deadline)
            self._thread.join(deadline + GRACE)

    def status(self) -> JobStatus:
        """Return the job's status, see ``Job``."""
        if self._thread is None:
            is_disabled = self._config.disabled
            return JobStatus(name=self.name, kind=self.kind, state="disabled" if is_disabled else "stopped")
        loop = self._loop
        is_alive = self._thread.is_alive() and not self._is_over
        error = loop.topic_error or loop.error
        if is_alive:
            error = self._switch.error or error or self._endpoint.error
        return JobStatus(
            name=self.name,
            kind=self.kind,
            state="disabled" if is_alive and self._switch.is_off else "running" if is_alive else "stopped",
            taken=loop.taken,
            done=loop.done,
            failed=loop.failed,
            dead=loop.dead,
            lag=loop.lag,
            error=error,
        )

    def _run(self) -> None:
        with self._closing:
            self._loop.run()
