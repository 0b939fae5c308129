"""The address of a database: its connection string and how to call it."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr

from memory.errors import InputError

_DEFAULTS = {
    "application_name": "circadian",
    "connect_timeout": "2",
    # Notice a host that is gone in half a minute, not in two hours.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


@dataclass(frozen=True)
class Address:
    """Where a database is."""

    conninfo: str = field(repr=False)
    """The parameters for libpq, password included: never shown."""
    name: str
    """Host and database, for messages."""


def address_of(url: SecretStr) -> Address:
    """Parse CIRCADIAN_DATABASE_URL. Makes no connection.

    Raises:
        InputError: `url` is no connection string. The message does not repeat it.
    """
    try:
        parts = conninfo_to_dict(url.get_secret_value())
    except psycopg.ProgrammingError:
        parts = {}
    given = {name: str(value) for name, value in parts.items() if value is not None}
    host, database = given.get("host", "localhost"), given.get("dbname", "")
    # A part of a password that is not encoded ends up in one of these.
    if not database or "@" in host + database:
        raise InputError(
            "CIRCADIAN_DATABASE_URL must read postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with "
            "%40 for an @ in the password, %2F for a / and so on"
        )
    return Address(make_conninfo(**{**_DEFAULTS, **given}), f"{host}/{database}")
