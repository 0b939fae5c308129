"""The table of memories in PostgreSQL, with pgvector. Needs the extra `postgres`."""

from memory.facts.postgres.table import PostgresTable, bring_up_to_date

__all__ = ["PostgresTable", "bring_up_to_date"]
