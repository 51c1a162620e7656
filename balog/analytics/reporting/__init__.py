"""``balog report``: the report, as numbers, as a page, and in the terminal."""
