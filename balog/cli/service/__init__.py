"""Commands of the event service."""
