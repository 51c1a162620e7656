"""Change records and their schemas: filter, set, mask, drop and rename.

``RecordEditor`` stands in a broker's pipe; ``StreamRules`` does the same to the rows of a file.
"""
