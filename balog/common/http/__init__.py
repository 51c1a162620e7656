"""HTTP to other servers: one client, verified TLS, the environment's proxies, public addresses only where that matters.

Everything goes over urllib3, which is imported with the first connection.
"""

from balog.common.http.client import HttpClient, HttpResponse, HttpStatusError
from balog.common.http.urls import CaFile, Timeout, Url, check_headers, check_url

__all__ = ["CaFile", "HttpClient", "HttpResponse", "HttpStatusError", "Timeout", "Url", "check_headers", "check_url"]
