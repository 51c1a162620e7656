"""Callbacks: post the events of a topic to an endpoint until it accepts them."""

from balog.service.jobs.callbacks.endpoint import check_callback
from balog.service.jobs.callbacks.job import CallbackJob

__all__ = ["CallbackJob", "check_callback"]
