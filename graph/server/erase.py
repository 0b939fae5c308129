"""Erasing a user of a server, with every agent: threads, schedules, assistants, all memory."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from langgraph.store.base import BaseStore, PutOp
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import Assistant

from memory.access import own_namespace
from memory.forgetting import residue
from memory.forgetting.found_rows import erase_memories
from memory.resources import Process
from memory.store_access import PAGE, list_items, write_batch
from memory.store_walk import namespaces_below


async def erase_user(user: str, client: LangGraphClient, process: Process) -> dict[str, int]:
    """Delete everything of a user, schedules first so that no run makes anything new.

    `client` sends its requests as this user. Idempotent: after an interruption, call it again.

    Returns:
        How many of each kind were deleted.

    Raises:
        MemoryStoreError: the files cannot be cleaned of the deleted records.
    """
    store = process.served_store
    counted = {
        "schedules": await _schedules(client),
        "threads": await _threads(client),
        "assistants": await _assistants(client),
    }
    await _checkpoints(user, process)
    counted["memories"] = await erase_memories(process.resources.semantic, user)
    counted["records"] = await _records(store, user)
    await residue.clean(store, residue.STORE_TABLES)
    await residue.clean(process.saver, residue.SAVER_TABLES)
    return counted


async def _schedules(client: LangGraphClient) -> int:
    deleted = 0
    while page := await client.crons.search(limit=PAGE):
        for cron in page:
            await client.crons.delete(cron["cron_id"])
        deleted += len(page)
    return deleted


async def _threads(client: LangGraphClient) -> int:
    """Delete threads with their runs and checkpoints; running ones are cancelled first."""
    deleted = 0
    while page := await client.threads.search(limit=PAGE):
        for thread in page:
            id_ = thread["thread_id"]
            for run in await client.runs.list(id_, limit=PAGE):
                if run["status"] in ("pending", "running"):
                    await client.runs.cancel(id_, run["run_id"], wait=True)
            await client.threads.delete(id_)
        deleted += len(page)
    return deleted


async def _checkpoints(user: str, process: Process) -> None:
    """Delete checkpoints of threads that the server does not know: lost by a crash, or from Python.

    Comes before the records, by which those threads are found.
    """
    below = await namespaces_below(process.served_store, own_namespace(user))
    for thread in {unquote(namespace[1]) for namespace in below if len(namespace) > 1}:
        assert process.saver is not None
        await process.saver.adelete_thread(thread)


async def _assistants(client: LangGraphClient) -> int:
    """Delete the assistants that the user made; the server's own stay."""
    deleted = 0
    while mine := _made(await client.assistants.search(limit=PAGE)):
        for assistant in mine:
            await client.assistants.delete(assistant["assistant_id"])
        deleted += len(mine)
    return deleted


def _made(found: Sequence[Assistant]) -> list[Assistant]:
    return [one for one in found if (one.get("metadata") or {}).get("created_by") != "system"]


async def _records(store: BaseStore, user: str) -> int:
    """Delete every item of the user, a namespace at a time."""
    deleted = 0
    for namespace in await namespaces_below(store, own_namespace(user)):
        items = await list_items(store, namespace)
        await write_batch(store, [PutOp(namespace, item.key, None) for item in items])
        deleted += len(items)
    return deleted
