"""Public and private IP addresses, according to ``ipaddress``, whose registries of special addresses are IANA's."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_ALSO_PRIVATE: list[IPv4Network | IPv6Network] = [
    IPv4Network("192.0.0.0/24"),  # some versions of Python have only a part of it; a cloud's metadata are there
    IPv4Network("192.88.99.0/24"),
    IPv6Network("fec0::/10"),
]
_PUBLIC_6 = IPv6Network("2000::/3")

_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052


def why_private(address: str) -> str:
    """Return the kind of an address that is not public, as a noun; "" for a public one.

    An IPv6 address that leads to an IPv4 address (mapped, NAT64, 6to4) is of that one's kind.

    Args:
        address: IPv4 or IPv6 in text, as ``socket.getaddrinfo`` returns it, also with a zone.

    Raises:
        ValueError: not an address.
    """
    given = ip_address(address)
    if isinstance(given, IPv6Address) and given.scope_id is not None:
        return "the local link"
    ip: IPv4Address | IPv6Address = _embedded(given)
    if ip.is_loopback or ip.is_unspecified:
        return "this machine"
    if ip.is_link_local:
        return "the local link"
    is_listed = any(ip in block for block in _ALSO_PRIVATE)
    is_public = ip.is_global and not ip.is_multicast and (ip.version == 4 or ip in _PUBLIC_6)
    return "" if is_public and not is_listed else "a private or reserved network"


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address leads to, else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


class Networks:
    """The private networks that connections may go to, in addition to the public Internet.

    Args:
        blocks: networks as ``10.1.0.0/16`` or ``fd00::/8``, or single addresses.

    Raises:
        ValueError: a text that is not a network.
    """

    def __init__(self, blocks: Sequence[str] = ()) -> None:
        self._blocks: list[IPv4Network | IPv6Network] = [ip_network(block, strict=False) for block in blocks]

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def why_refused(self, address: str) -> str:
        """Return the kind of an address to which no connection is allowed, as a noun; "" if one is.

        Raises:
            ValueError: not an address.
        """
        kind = why_private(address)
        if not kind:
            return ""
        ip = ip_address(address.partition("%")[0])
        is_listed = any(candidate in block for candidate in (ip, _embedded(ip)) for block in self._blocks)
        return "" if is_listed else kind


ANYWHERE = Networks(["0.0.0.0/0", "::/0"])
"""Every network. For URLs that the operator wrote, never for a pushed document's."""
