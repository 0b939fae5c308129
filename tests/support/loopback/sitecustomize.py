"""Refuses every address but loopback, from the import of this module to the end of the process.

The conftest imports it, and puts this folder on `PYTHONPATH`: under this name every Python that
a test starts imports it too, before anything else. An audit hook sees what sockets do from
whichever library they come, and cannot be taken back.
"""

import ipaddress
import sys
from typing import Any

# Its sockets are opened in C, where no audit hook sees them; asyncio's own loop takes its place.
sys.modules["uvloop"] = None  # type: ignore[assignment]  # None is how Python marks "not to import"

_ADDRESS_AT = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_HOST_AT = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}


def is_loopback(host: object) -> bool:
    """Whether `host` names this machine without asking a name server. Not text: no host at all."""
    if isinstance(host, (bytes, bytearray)):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str) or host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse(event: str, args: tuple[Any, ...]) -> None:
    """Raise RuntimeError where `event` would leave this machine or resolve a name."""
    if event in _ADDRESS_AT:
        address = args[_ADDRESS_AT[event]]
        # A UNIX socket's address is no tuple; a connected socket's `sendmsg` names none.
        host = address[0] if isinstance(address, tuple) else None
    elif event in _HOST_AT:
        host = args[_HOST_AT[event]]
    else:
        return
    if not is_loopback(host):
        raise RuntimeError(f"tests reach loopback only: {event} {host!r}")


sys.addaudithook(refuse)
