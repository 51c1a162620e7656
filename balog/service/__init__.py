"""The event service, which accepts events over HTTP, stores, routes, filters and delivers them; and its client."""

from balog.service.client import DeliveryError, ServiceClient

__all__ = ["DeliveryError", "ServiceClient"]
