"""The kinds of monitors, one a file."""
