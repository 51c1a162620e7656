"""The page ``/`` of a service: what it does now, with live numbers."""
