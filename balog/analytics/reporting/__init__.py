"""The report that people look at: its numbers, the page, the terminal."""
