"""Taps of files: CSV, JSON, Parquet and Excel in a folder or a store, compressed or not, one stream a pattern."""

from balog.tap.files.file_stream import FileStream

__all__ = ["FileStream"]
