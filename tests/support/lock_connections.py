"""A database that two processes have open, and the connections that hold its locks."""

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from memory.installation.database import Database, open_database

HOLDERS = "FROM pg_stat_activity WHERE application_name LIKE 'circadian:%'"


@pytest.fixture
def home(postgres_url: str) -> Database:
    return open_database(SecretStr(postgres_url), embedder="offline")


@pytest.fixture
def elsewhere(postgres_url: str) -> Database:
    return open_database(SecretStr(postgres_url))


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def connections(admin: psycopg.Connection[Any]) -> int:
    [count] = admin.execute(f"SELECT count(*) {HOLDERS}").fetchone() or [0]
    return int(count)


def cut_off(admin: psycopg.Connection[Any]) -> int:
    """Close the connections that hold locks, from the server's side, and see them end; how many."""
    return admin.execute(f"SELECT pg_terminate_backend(pid, 5000) {HOLDERS}").rowcount


async def gone(admin: psycopg.Connection[Any]) -> bool:
    for _ in range(100):
        if not connections(admin):
            return True
        await asyncio.sleep(0.02)
    return False
