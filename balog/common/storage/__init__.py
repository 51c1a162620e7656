"""Storage at a URL: a folder or file on local disk, or on any store that fsspec knows (S3, GCS, FTP, SFTP …).

Files are written whole or not at all. The packages of a remote store are imported when it is first used.
"""

from balog.common.storage.base import MAX_BYTES, Entry, Options, Storage, StorageError
from balog.common.storage.factory import is_url, open_storage

__all__ = ["MAX_BYTES", "Entry", "Options", "Storage", "StorageError", "is_url", "open_storage"]
