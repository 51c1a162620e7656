"""Process BATCH messages: read them into RECORDs, write RECORDs to files, change and check them.

``BatchReader`` stands before the editor of records, so that what it reads is filtered and masked like any record, and
``BatchWriter`` after it. A BATCH that is rewritten goes through both as rows, one at a time.
"""
