"""Opens checkpoints and store, for Python and for a server.

A server loads this file more than once and under several names (see langgraph.json), so the module
holds no lock, connection or cache.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from memory.errors import InputError
from memory.installation import DataFolder, Installation, open_installation
from memory.models import model_name
from memory.runtime import process_now, process_resources
from memory.settings import configured
from memory.storage.sqlite import CircadianSqliteSaver, CircadianSqliteStore, open_file
from memory.text import machine_zone

log = logging.getLogger("circadian")

Saver = BaseCheckpointSaver[str]


@asynccontextmanager
async def open_saver(home: Installation, *, keep: int = 50) -> AsyncIterator[Saver]:
    """The checkpoints of `home`; `keep`: checkpoints to keep of each thread's root graph.

    Raises:
        FolderError, DatabaseDown: the file cannot be opened, or the database cannot be reached.
    """
    if isinstance(home, DataFolder):
        # Checkpoints are too long for reads in the event loop's thread.
        async with open_file(home.checkpoints_db, quick_reads=False) as file:
            saver = CircadianSqliteSaver(file, keep=keep)
            await file.run(saver.setup)
            yield saver
        return
    from memory.storage.postgres import CircadianPostgresSaver, Pool

    async with Pool(home.address) as pool:
        shared = CircadianPostgresSaver(pool, keep=keep)
        await shared.setup()
        yield shared


@asynccontextmanager
async def open_store(home: Installation, *, served: bool = False) -> AsyncIterator[BaseStore]:
    """The store of `home`. Raises as `open_saver`. `served`: the event loop may read no file."""
    if isinstance(home, DataFolder):
        async with open_file(home.store_db, quick_reads=not served) as file:
            store = CircadianSqliteStore(file)
            await file.run(store.setup)
            yield store
        return
    from memory.storage.postgres import CircadianPostgresStore, Pool

    async with Pool(home.address) as pool, aclosing(CircadianPostgresStore(pool)) as shared:
        await shared.setup()
        yield shared


@asynccontextmanager
async def checkpointer() -> AsyncIterator[Saver]:
    """A server's checkpoints. While they are open, only servers can run an agent.

    A data folder has one server at a time; a database is shared by several.

    Raises:
        BusyError: an agent is running elsewhere, or another server has the folder.
    """
    found = await asyncio.to_thread(configured)
    deployment, kept = found.deployment, found.settings.checkpoints_kept
    home = await asyncio.to_thread(open_installation, deployment)
    async with (
        home.server_lock(timeout=deployment.lock_timeout),
        open_saver(home, keep=kept) as saver,
    ):
        process = await asyncio.to_thread(process_now)
        process.saver = saver
        yield saver


@asynccontextmanager
async def store() -> AsyncIterator[BaseStore]:
    """A server's store. Also prepares the models and tools of its runs, before the first run.

    Raises:
        InputError: unknown model name, missing key, or an extension that cannot be loaded.
    """
    from graph.server import serving  # it needs packages that only a server has
    from tools.extensions import extra

    open_ = serving().open
    deployment = (await asyncio.to_thread(configured)).deployment
    home = await asyncio.to_thread(open_installation, deployment)
    with suppress(InputError):  # a run that needs the zone reports the error
        # Reads files, which no node of a server may do; the answer is kept.
        await asyncio.to_thread(machine_zone)
    async with (
        process_resources(
            lambda: extra(deployment, data=deployment.data, apart=not open_)
        ) as resources,
        open_store(home, served=True) as opened,
    ):
        log.info(
            "model %s, embedder %s, data %s",
            model_name(resources.chat_model),
            home.embedder,
            home.name,
        )
        process = process_now()
        process.store = opened
        if not open_:
            process.users_may_set = serving().users_may_set
            process.folders = deployment.folder
        yield opened
