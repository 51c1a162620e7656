"""The one way to open a URL: a folder or file on local disk, or wherever fsspec reaches (S3, GCS, FTP, SFTP …).

What is written is there whole or not at all. The packages of a remote store are imported when it is first used.
"""

from balog.storage.base import MAX_BYTES, Entry, Options, Storage, StorageError
from balog.storage.opening import is_url, open_storage

__all__ = ["MAX_BYTES", "Entry", "Options", "Storage", "StorageError", "is_url", "open_storage"]
