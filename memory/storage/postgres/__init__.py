"""PostgreSQL: connections, checkpoints and the store. Needs the extra `postgres`."""

from memory.storage.postgres.connections import (
    SESSION,
    SIZE,
    Address,
    AsyncConnection,
    BlockingPool,
    Connection,
    Pool,
    address_of,
    clear_errors,
    lock_key,
    storable,
)
from memory.storage.postgres.saver import CircadianPostgresSaver
from memory.storage.postgres.store import CircadianPostgresStore

__all__ = [
    "SESSION",
    "SIZE",
    "Address",
    "AsyncConnection",
    "BlockingPool",
    "CircadianPostgresSaver",
    "CircadianPostgresStore",
    "Connection",
    "Pool",
    "address_of",
    "clear_errors",
    "lock_key",
    "storable",
]
