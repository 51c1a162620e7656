"""Handlers that run as they are and that a team copies as its start: ``balog consume consumers --topics URL``."""
