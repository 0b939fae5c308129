"""Opening an installation in a data folder or a PostgreSQL database.

A data folder that the caller names comes first, then the database of CIRCADIAN_DATABASE_URL, then
the data folder of CIRCADIAN_DATA. `memory.installation.database` is imported only when a database
is used: it needs the extra `postgres`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.embeddings import Embeddings
from pydantic import SecretStr

from memory.errors import InputError
from memory.installation.folder import HEAD, DataFolder, open_folder
from memory.settings import Deployment

if TYPE_CHECKING:
    from memory.installation.database import Database, Examined


Installation: TypeAlias = "DataFolder | Database"
"""An open installation: all agents that share an embedder and a memory."""


def open_installation(
    deployment: Deployment,
    *,
    data: Path | None = None,
    embedder: str | None = None,
    embeddings: Embeddings | None = None,
    change: bool = False,
) -> Installation:
    """Open the installation that `data` or the variables name; make it if there is none. Blocking.

    Raises as `open_folder` and `open_database`, and InputError for a missing package.
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
    """Whether there is an installation. Makes nothing. Blocking; raises as `open_installation`."""
    url = database_url(deployment, data)
    if url is None:
        return ((data or deployment.data).expanduser() / HEAD).exists()
    with _extra():
        from memory.installation.database import is_made
    return is_made(url)


def database_url(deployment: Deployment, data: Path | None = None) -> SecretStr | None:
    """The URL of the database that `open_installation` opens; None for a data folder."""
    return deployment.database_url if data is None else None


def examine(url: SecretStr) -> Examined:
    """Look at the database at `url`; changes nothing. Blocking, three seconds at most."""
    with _extra():
        from memory.installation.database import examine
    return examine(url)


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"CIRCADIAN_DATABASE_URL needs a package that is not installed ({error}): "
            "pip install '.[postgres]' in the clone"
        ) from error
