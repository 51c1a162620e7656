"""BATCH messages and the files they name.

``dialects`` reads and writes the message in its three dialects; ``files`` reads a file's rows and writes them, with one
module for each format. Rows are JSON objects as bytes, so that what nobody changes keeps its digits.
"""
