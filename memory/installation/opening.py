"""An installation: everything that agents share, kept in a data folder or a PostgreSQL database.

This module chooses between them: a data folder that the caller names comes first, then the database
of CIRCADIAN_DATABASE_URL, then the data folder of CIRCADIAN_DATA.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from pydantic import SecretStr

from memory.errors import InputError
from memory.installation.folder import HEAD, open_folder
from memory.installation.protocol import Installation
from memory.settings import Deployment


def open_installation(
    deployment: Deployment,
    *,
    data: Path | None = None,
    embedder: str | None = None,
    embeddings: Embeddings | None = None,
    change: bool = False,
) -> Installation:
    """Open the installation that `data` or the variables name; make it if there is none. Blocking.

    Args:
        deployment: the variables.
        data: a data folder; it comes before every variable.
        embedder: the embedder's name; default CIRCADIAN_EMBEDDER.
        embeddings: the embedder itself; it comes before a name.
        change: record the wanted embedder in place of another one; for `graph.use_cases.reindexing`.

    Raises:
        FolderError: it cannot be used as asked; see `open_folder`, `open_database`.
        DatabaseDown: the database cannot be reached.
        InputError: unknown embedder, missing key, wrong URL or missing package.
    """
    url = database_url(deployment, data)
    wanted: dict[str, Any] = {
        "embedder": embedder or deployment.embedder,
        "offline": deployment.offline,
        "embeddings": embeddings,
        "change": change,
    }
    if url is None:
        return open_folder(data or deployment.data, **wanted)
    with _extra():
        from memory.installation.database import open_database
    return open_database(url, **wanted)


def is_made(deployment: Deployment, data: Path | None = None) -> bool:
    """Whether there is an installation. Makes nothing. Blocking; raises as `open_home`."""
    url = database_url(deployment, data)
    if url is None:
        return ((data or deployment.data).expanduser() / HEAD).exists()
    with _extra():
        from memory.installation.database import is_made
    return is_made(url)


def database_url(deployment: Deployment, data: Path | None = None) -> SecretStr | None:
    """The URL of the database that `open_home` opens; None for a data folder."""
    return deployment.database_url if data is None else None


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"CIRCADIAN_DATABASE_URL needs a package that is not installed ({error}): "
            "pip install 'circadian-agent[postgres]'"
        ) from error
