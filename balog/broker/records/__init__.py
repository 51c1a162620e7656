"""Change records and their schemas: filter, sample, set, mask, drop, rename and flatten.

``RecordEditor`` stands in a broker's pipe; ``StreamRules`` does the same to the rows of a file.
"""
