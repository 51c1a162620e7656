"""Runs statements in Spark's dialect over the tables of ``balog load`` with DuckDB, in this process.

What DuckDB would answer differently from Spark raises ``SparkNeeded``.
"""
