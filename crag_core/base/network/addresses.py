"""Refuses addresses that no request may go to: link-local ones, and the metadata services of clouds. Pure.

Other private networks stay allowed, since model servers stand there; not for pages that a web search found.
"""

import ipaddress
import re
import socket
import unicodedata
from urllib.parse import unquote, urlsplit, urlunsplit

from crag_core.base.errors import BadRecord

_REFUSED = tuple(
    ipaddress.ip_network(one)
    for one in (
        *("169.254.0.0/16", "fe80::/10"),  # link-local; most clouds answer at 169.254.169.254
        *("fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128"),  # Amazon, Google and Scaleway over IPv6
        *("100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32"),  # Alibaba, Oracle, Azure
        *("224.0.0.0/4", "ff00::/8", "255.255.255.255/32"),  # to many machines at once
    )
)
_RESERVED = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "fec0::/10")))
"""Never of the public Internet, though Python calls parts of them global."""
_NAMES = frozenset(
    {
        *("metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.internal"),
        *("instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com"),
    }
)
_LOCAL = re.compile(r"[^.:]*|.*\.(localhost|local|internal|intranet|lan|home|corp|home\.arpa)")
"""Names that only the network around this machine knows."""
_NUMBERS = re.compile(r"[0-9a-fA-FxX.]+")
_CARRIERS = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))
"""IPv6 networks whose last 32 bits are an IPv4 address (NAT64, SIIT, and the old compatible form)."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def why_refused(host: str) -> str:
    """Why nothing may be sent to this host, a name or an address in any spelling; "": nothing speaks against it."""
    name = _plain_name(host)
    if name in _NAMES:
        return f"{name} is where clouds answer with the secrets of a machine"
    address = read_address(name)
    if address is not None and any(_is_in(form, _REFUSED) for form in _forms(address)):
        return f"{address} is a link-local or cloud metadata address"
    return ""


def why_not_public(host: str) -> str:
    """As `why_refused`, for what somebody else names: also why it is no address of the public Internet."""
    if why := why_refused(host):
        return why
    name = _plain_name(host)
    address = read_address(name)
    if address is None:
        return f"{name} is a name of a local network" if _LOCAL.fullmatch(name) else ""
    forms = _forms(address)
    is_public = all(form.is_global and not form.is_multicast and not _is_in(form, _RESERVED) for form in forms)
    return "" if is_public else f"{address} is no public address"


def is_server(url: str) -> bool:
    """Whether a request can be sent there: http or https, a host that can be looked up, a port if any."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")  # as the look-up does, which fails without saying what is wrong
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its words may hold a part of the password
        return False


def check_url(what: str, url: str) -> None:
    """Raises `BadRecord` for a URL that leads to such a host; `what` names the setting."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # reported where the address is read
        return
    if why := why_refused(host):
        raise BadRecord(
            f"{what}: expected the address of a server of yours, found one that is never asked ({why}).",
            hint="Write the address of the server itself; 127.0.0.1, 10.…, 172.16.… and 192.168.… are allowed.",
        )


def without_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """An address, and the name and password in it if there are any: clients write the address into their logs."""
    try:
        parts = urlsplit(url)
    except ValueError:  # reported where the server is asked
        return url, None
    before, _, place = parts.netloc.rpartition("@")
    login = (unquote(parts.username or ""), unquote(parts.password or "")) if before else None
    return urlunsplit(parts._replace(netloc=place)), login


def read_address(text: str) -> Address | None:
    """An IP address in any spelling that a resolver takes: dotted, decimal, octal, hexadecimal, short; else None."""
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text)) if _NUMBERS.fullmatch(text) else None
    except OSError:
        return None


def _plain_name(host: str) -> str:
    name = unicodedata.normalize("NFKC", unquote(host)).strip("[]")
    return re.sub("[。｡．]", ".", name).rstrip(".").lower()


def _forms(address: Address) -> list[Address]:
    """The address, and the IPv4 address that it stands for, if any."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    inside = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _CARRIERS):
        inside.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [address, *(one for one in inside if one is not None)]


def _is_in(address: Address, networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
