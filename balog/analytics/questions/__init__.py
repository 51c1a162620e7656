"""The questions of the notebook functions and of the report: SQL in Spark's dialect, over the five frames of rollups.

They avoid what engines do differently. Structs are not compared if a field may be null: the rows of greatest or least
structs are chosen by keys without nulls. Doubles become whole numbers by ``whole``, because DuckDB's cast rounds.
"""
