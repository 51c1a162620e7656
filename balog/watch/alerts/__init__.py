"""Alerts: their states, incidents, events and targets."""
