"""Records and their schemas on the way: filtered, sampled, set, masked, dropped, renamed, laid flat.

``RecordEditor`` stands in a broker's pipe; ``StreamRules`` does the same to the rows of a file.
"""
