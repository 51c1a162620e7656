"""The event service: takes typed events over HTTP, keeps them, routes, filters and calls back; and its client."""

from balog.delivery.client import Client, DeliveryError

__all__ = ["Client", "DeliveryError"]
