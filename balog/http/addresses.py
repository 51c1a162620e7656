"""Public and private IP addresses, by IANA's registries of special-purpose addresses (RFC 6890).

``ipaddress.is_private`` differs between versions of Python, so it is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_IPV4 = {
    "this network": ["0.0.0.0/8"],
    "this machine": ["127.0.0.0/8"],
    "a private network": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
    "a provider's own network": ["100.64.0.0/10"],
    "the local link": ["169.254.0.0/16"],
    "multicast": ["224.0.0.0/4"],
    "a reserved block": [
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
    ],
}
_IPV6 = {
    "this machine": ["::/127"],
    "a private network": ["fc00::/7", "fec0::/10"],
    "the local link": ["fe80::/10"],
    "multicast": ["ff00::/8"],
    "a reserved block": ["2001::/23", "2001:db8::/32", "3fff::/20"],
}
_BLOCKS_4 = [(IPv4Network(block), kind) for kind, blocks in _IPV4.items() for block in blocks]
_BLOCKS_6 = [(IPv6Network(block), kind) for kind, blocks in _IPV6.items() for block in blocks]
_PUBLIC_6 = IPv6Network("2000::/3")

_EMBEDDING = [  # blocks whose packets end at an IPv4 address, and the bits below that address
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64 (RFC 6052)
    (IPv6Network("2002::/16"), 80),  # 6to4 (RFC 3056)
]


def why_private(address: str) -> str:
    """Return the kind of an address that is not public, as a noun; "" for a public one.

    An IPv6 address that leads to an IPv4 address (mapped, NAT64, 6to4) is of that one's kind.

    Args:
        address: IPv4 or IPv6 in text, as ``socket.getaddrinfo`` returns it, also with a zone.

    Raises:
        ValueError: not an address.
    """
    found = ip_address(address)
    if isinstance(found, IPv6Address):
        return _why_private_6(found)
    return _why_private_4(found)


def _why_private_4(address: IPv4Address) -> str:
    return next((kind for block, kind in _BLOCKS_4 if address in block), "")


def _why_private_6(address: IPv6Address) -> str:
    if address.scope_id is not None:
        return "the local link"
    embedded = _embedded(address)
    if isinstance(embedded, IPv4Address):
        return _why_private_4(embedded)
    for block, kind in _BLOCKS_6:
        if address in block:
            return kind
    return "" if address in _PUBLIC_6 else "a reserved block"


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address leads to, else the address itself."""
    for block, below in _EMBEDDING:
        if isinstance(address, IPv6Address) and address in block:
            return IPv4Address((int(address) >> below) & 0xFFFF_FFFF)
    return address


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
        found = ip_address(address.partition("%")[0])
        is_listed = any(one in block for one in (found, _embedded(found)) for block in self._blocks)
        return "" if is_listed else kind


ANYWHERE = Networks(["0.0.0.0/0", "::/0"])
"""Every network. For URLs that the operator wrote, never for a pushed document's."""
