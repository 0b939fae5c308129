"""A look at a database from outside, for `circadian doctor`."""

from __future__ import annotations

import time
from typing import NamedTuple

import psycopg
from pydantic import SecretStr

from memory.consequences import NOT_ACCEPTED
from memory.postgres.address import address_of
from memory.postgres.pool import clear_errors

_LOOK = """
SELECT current_setting('server_version'),
    coalesce(
        (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
        (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')
    ),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::int
"""


class Examined(NamedTuple):
    """What `examine` found."""

    name: str
    """Host and database."""
    server: str
    """PostgreSQL's version."""
    vector: str | None
    """pgvector's version; None if the server does not have that extension."""
    connections: int
    """Open connections, this one included."""
    most: int
    """Connections that the server allows."""
    seconds: float
    """Time to connect and get the answer."""


def examine(url: SecretStr) -> Examined:
    """Look at the database at `url`; changes nothing. Blocking, three seconds at most.

    Raises:
        DatabaseDown: the database cannot be reached.
        InputError: `url` is no connection string.
    """
    address, began = address_of(url), time.monotonic()
    with (
        clear_errors(address.name, lambda: NOT_ACCEPTED),
        psycopg.connect(address.conninfo, autocommit=True) as conn,
    ):
        row = conn.execute(_LOOK).fetchone()
    assert row is not None
    server, vector, connections, most = row
    return Examined(address.name, server, vector, connections, most, time.monotonic() - began)
