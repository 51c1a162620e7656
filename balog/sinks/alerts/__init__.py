"""Alerts in sinks: one key for each, and its text."""
