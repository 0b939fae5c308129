"""Where a database is."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr

from memory.errors import InputError

_DEFAULTS = {
    "application_name": "circadian",
    "connect_timeout": "2",
    # A host that is gone is noticed in half a minute, not in two hours.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


@dataclass(frozen=True)
class Address:
    """Where a database is."""

    conninfo: str = field(repr=False)
    """What libpq is told, password included: never shown."""
    name: str
    """Host and database, to be shown."""


def address_of(url: SecretStr) -> Address:
    """The address that CIRCADIAN_DATABASE_URL gives. No connection is made.

    Raises:
        InputError: it is no connection string. The message does not repeat it.
    """
    try:
        parts = conninfo_to_dict(url.get_secret_value())
    except psycopg.ProgrammingError:
        parts = {}
    given = {name: str(value) for name, value in parts.items() if value is not None}
    host, database = given.get("host", "localhost"), given.get("dbname", "")
    # Of a password that is not encoded a part ends up in one of them.
    if not database or "@" in host + database:
        raise InputError(
            "CIRCADIAN_DATABASE_URL must read postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with "
            "%40 for an @ in the password, %2F for a / and so on"
        )
    return Address(make_conninfo(**{**_DEFAULTS, **given}), f"{host}/{database}")
