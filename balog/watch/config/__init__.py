"""The configuration of monitors, and its checks."""
