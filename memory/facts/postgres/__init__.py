"""The table of memories in PostgreSQL, with pgvector. Needs the extra `postgres`."""

from memory.facts.postgres.schema import bring_up_to_date
from memory.facts.postgres.table import PostgresTable

__all__ = [
    "PostgresTable",
    "bring_up_to_date",
]
