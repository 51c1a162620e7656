"""Which addresses may be called: none that is not of the public Internet, however it is written."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.common.http.addresses import why_private

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.128.0.1", "2606:4700::1111"]
V4 = st.ip_addresses(v=4)
SPECIAL_V4 = st.sampled_from(
    [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "192.0.2.0/24",
        "198.18.0.0/15",
        "224.0.0.0/4",
        "240.0.0.0/4",
    ]
).flatmap(lambda block: st.ip_addresses(network=block))


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_internet_may_be_called(address):
    assert why_private(address) == ""


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "this machine"),
        ("::1", "this machine"),
        ("::", "this machine"),
        ("0.0.0.0", "this machine"),
        ("0.1.2.3", "a private or reserved network"),
        ("169.254.169.254", "the local link"),
        ("fe80::1", "the local link"),
        ("fe80::1%eth0", "the local link"),
        ("10.1.2.3", "a private or reserved network"),
        ("172.31.255.255", "a private or reserved network"),
        ("192.168.0.1", "a private or reserved network"),
        ("fd00:ec2::254", "a private or reserved network"),
        ("fec0::1", "a private or reserved network"),
        ("100.64.0.1", "a private or reserved network"),
        ("224.0.0.1", "a private or reserved network"),
        ("ff02::1", "a private or reserved network"),
        ("255.255.255.255", "a private or reserved network"),
        ("192.0.0.192", "a private or reserved network"),
        ("2001:db8::1", "a private or reserved network"),
        ("2001::1", "a private or reserved network"),
        ("::127.0.0.1", "a private or reserved network"),
        ("64:ff9b:1::a00:1", "a private or reserved network"),
        ("4000::1", "a private or reserved network"),
    ],
)
def test_all_others_may_not(address, kind):
    assert why_private(address) == kind


@given(V4 | SPECIAL_V4)
def test_no_address_is_taken_for_public_that_the_standard_library_does_not(address):
    is_public = address.is_global and not address.is_multicast
    if why_private(str(address)) == "":
        assert is_public
    elif is_public:  # the standard library leaves these two out
        assert address in ipaddress.ip_network("192.88.99.0/24") or address in ipaddress.ip_network("192.0.0.0/24")


@given(st.ip_addresses(v=6))
def test_of_ipv6_neither(address):
    if why_private(str(address)) == "":
        embedded = address.sixtofour is not None or address in ipaddress.ip_network("64:ff9b::/96")
        assert address.is_global or embedded
        assert not address.is_multicast


@given(V4 | SPECIAL_V4)
def test_what_leads_to_an_ipv4_address_is_what_that_one_is(address):
    kind = why_private(str(address))
    number = int(address)
    for embedding in (0xFFFF << 32 | number, 0x64_FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert why_private(str(ipaddress.IPv6Address(embedding))) == kind


def test_a_name_is_no_address():
    with pytest.raises(ValueError, match=r"example\.com"):
        why_private("example.com")
