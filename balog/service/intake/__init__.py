"""Stores accepted events durably: routing to topics, batching, and the fallback while topics fail."""
