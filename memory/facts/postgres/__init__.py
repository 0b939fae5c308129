"""The table of memories in PostgreSQL, with pgvector. Needs the extra `postgres`."""

from memory.facts.postgres.schema import bring_up_to_date
from memory.facts.postgres.table import PostgresHistory, PostgresTable

__all__ = [
    "PostgresHistory",
    "PostgresTable",
    "bring_up_to_date",
]
