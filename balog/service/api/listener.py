"""The listening socket of a service, and who can reach it."""

from __future__ import annotations

import ipaddress
import socket

from balog.common.errors import BalogError
from balog.consumers.monitoring.health import read_address

_BACKLOG = 2048


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to a host; False if it has no address."""
    try:
        addresses = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
        return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in addresses)
    except (OSError, UnicodeError, ValueError):
        return False


def open_socket(listen: str) -> socket.socket:
    """Open the listening socket. Port 0 selects a free port.

    Raises:
        ConfigError: not an address.
        BalogError: the address is not available.
    """
    host, port = read_address(listen)
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        listener = socket.create_server(addresses[0][4], family=addresses[0][0], backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        raise BalogError(f"cannot listen at {listen}: {getattr(error, 'strerror', None) or error}") from None
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket, *, is_tls: bool) -> str:
    """Return the URL of a listening socket for clients on this machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http{'s' * is_tls}://{f'[{host}]' if ':' in host else host}:{port}"
