"""Callbacks: the events of a topic, posted to somebody's endpoint until it takes them."""

from balog.delivery.jobs.callbacks.endpoint import check_callback
from balog.delivery.jobs.callbacks.job import CallbackJob

__all__ = ["CallbackJob", "check_callback"]
