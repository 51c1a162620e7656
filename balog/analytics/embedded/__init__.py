"""Runs statements in DuckDB's SQL over the tables of ``balog load`` and raw events, in this process."""
