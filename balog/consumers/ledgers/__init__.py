"""Ledgers: which handler has finished which event."""
