"""What `circadian doctor` looks at where memory is kept: folder or database, vectors, Mem0."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NotRequired

from langchain_core.embeddings import Embeddings
from pydantic import SecretStr
from typing_extensions import TypedDict

from graph.cli.access import holder, home_as_recorded, opened_without_running
from graph.cli.console import counted
from graph.cli.options import Options
from graph.handle import AsyncAgent
from graph.status import status
from memory.errors import CircadianError, InputError
from memory.folder import FOLDER_SCHEMA, Folder
from memory.forgetting.open_forget import unfinished
from memory.home import Home, database_url, is_made, open_home
from memory.models.embed import embed_query
from memory.models.retry import retrying
from memory.models.seam import OFFLINE, choose_embedder, load_embedder
from memory.semantic import settle_mem0
from memory.settings import Deployment
from memory.sqlite.integrity import quick_check

DATABASE, FOLDER = "database", "data folder"


class Check(TypedDict):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    note: NotRequired[bool]
    """Nothing is wrong, but there is something to know."""


class _Place(NamedTuple):
    """Where memory is kept, or is to be."""

    options: Options
    deployment: Deployment
    url: SecretStr | None
    """The database; None: a data folder."""

    @property
    def name(self) -> str:
        return FOLDER if self.url is None else DATABASE


async def home_checks(options: Options, *, call: bool) -> list[Check]:
    """Where memory is kept, what is in it, who holds it, and what waits.

    What cannot be opened ends the list. `call` asks the embedder for a vector.
    """
    deployment = Deployment()
    place = _Place(options, deployment, database_url(deployment, options.data))
    checks: list[Check] = []
    try:
        if place.url is not None:
            checks.append(await asyncio.to_thread(_database, place.url))
        if not await asyncio.to_thread(is_made, deployment, options.data):
            return [*checks, *await _nothing_yet(place, call=call)]
        home = await asyncio.to_thread(home_as_recorded, options)
    except CircadianError as error:
        return [{"name": place.name, "ok": False, "detail": str(error)}]
    try:
        return [*checks, *await _of_home(place, home, call=call)]
    finally:
        await asyncio.to_thread(home.close)


async def _nothing_yet(place: _Place, *, call: bool) -> list[Check]:
    """What is said before anything is kept. A file where the folder should be is a problem."""
    options = place.options
    if place.url is None and options.folder.is_file():
        detail = f"{options.folder} is a file; name a folder with --data"
        return [{"name": FOLDER, "ok": False, "detail": detail}]
    name = choose_embedder(options.embedder, offline=options.offline)
    none: Check = {"name": FOLDER, "ok": True, "detail": "none yet: circadian send makes one"}
    if place.url is not None:
        none = {"name": "memory", "ok": True, "detail": "none there yet: circadian send begins"}
    return [
        {**none, "note": True},
        await _embedder(name, lambda: load_embedder(name), call=call),
    ]


def _database(url: SecretStr) -> Check:
    """The database's server, as it answers. Blocking; raises as `examine`."""
    from memory.postgres.examination import examine
    from memory.postgres.pool import SIZE

    seen = examine(url)
    left = seen.most - seen.connections
    told = [
        f"{seen.name}, PostgreSQL {seen.server}",
        f"pgvector {seen.vector}" if seen.vector else "no pgvector: install it on the server",
        f"answered in {seen.seconds * 1_000:,.0f} ms",
        f"{seen.connections:,} of {seen.most:,} connections open, a pool takes up to {SIZE}",
    ]
    if few := left <= SIZE:
        told.append("few are left: raise max_connections")
    check: Check = {"name": DATABASE, "ok": seen.vector is not None, "detail": ", ".join(told)}
    return {**check, "note": True} if few else check


async def _of_home(place: _Place, home: Home, *, call: bool) -> list[Check]:
    """An open home; the agent is looked at where everything under it is sound."""
    embedder = await _recorded_embedder(place, home, call=call)
    refused = await _refused(place)
    checks = [*_folder(home), refused or embedder]
    checks += [await _file(path) for path in _files(home)]
    sound = all(check["ok"] for check in checks if check is not embedder)
    if sound or refused:
        checks += [await _vectors(home), await asyncio.to_thread(_mem0, home)]
    if not sound:
        return checks
    return [*checks, await _holder(home, place.options.agent), await _agent(place.options)]


def _folder(home: Home) -> list[Check]:
    if not isinstance(home, Folder):
        return []
    detail = f"{home.path}, writable, schema {FOLDER_SCHEMA}"
    return [{"name": FOLDER, "ok": True, "detail": detail}]


async def _recorded_embedder(place: _Place, home: Home, *, call: bool) -> Check:
    return await _embedder(
        home.embedder, lambda: home.embeddings, call=call, dimension=home.dimension
    )


async def _refused(place: _Place) -> Check | None:
    """That another embedder is asked for than the one recorded, and what to do."""
    try:
        wanted = await asyncio.to_thread(
            open_home, place.deployment, data=place.options.data, embedder=place.options.embedder
        )
    except InputError as error:
        return {"name": "embedder", "ok": False, "detail": str(error)}
    await asyncio.to_thread(wanted.close)
    return None


async def _embedder(
    name: str, load: Callable[[], Embeddings], *, call: bool, dimension: int | None = None
) -> Check:
    """The embedder: can it be made, does it embed, and do its vectors fit?"""
    try:
        embeddings = await asyncio.to_thread(load)
        numbers = dimension
        if call:
            numbers = len(await embed_query(embeddings, "ready", retrying(attempts=1)))
    except CircadianError as error:
        return {"name": "embedder", "ok": False, "detail": f"{name}: {error}"}
    if dimension is not None and numbers != dimension:
        wrong = f"{name} gives vectors of {numbers} numbers, and those kept have {dimension}"
        what = f"{wrong}: `circadian reindex --embedder {name}`"
        return {"name": "embedder", "ok": False, "detail": what}
    asked = "it embeds" if call else "--call asks it"
    detail = name if name == OFFLINE else f"{name}, {asked}"
    return {"name": "embedder", "ok": True, "detail": detail}


def _files(home: Home) -> list[Path]:
    """The databases that exist; each is made when it is first needed."""
    if not isinstance(home, Folder):
        return []
    every = (home.checkpoints_db, home.store_db, home.facts_db)
    return [path for path in every if path.exists()]


async def _file(path: Path) -> Check:
    wrong, size = await asyncio.to_thread(lambda: (quick_check(path), path.stat().st_size))
    detail = wrong or f"sound, {size / 1e6:,.1f} MB"
    return {"name": path.name, "ok": wrong is None, "detail": detail}


async def _vectors(home: Home) -> Check:
    """What has no vector of the embedder in use: found by words alone."""
    try:
        waiting = await home.semantic().count_unembedded()
    except CircadianError as error:
        return {"name": "vectors", "ok": False, "detail": str(error)}
    kind = f"{home.embedder}, {home.dimension:,} numbers each"
    if not waiting:
        return {"name": "vectors", "ok": True, "detail": f"none is missing ({kind})"}
    waits = counted(waiting, "memory waits", "memories wait")
    detail = f"{waits} for one ({kind}), found by words until `circadian reindex`"
    return {"name": "vectors", "ok": True, "detail": detail, "note": True}


def _mem0(home: Home) -> Check:
    """Whether Mem0 can be imported, and is silent. Blocking: a second."""
    with tempfile.TemporaryDirectory() as scratch:
        settle_mem0(home.mem0_dir if isinstance(home, Folder) else Path(scratch))
        try:
            from mem0.memory.telemetry import MEM0_TELEMETRY as telemetry
        except ImportError as error:
            detail = f"it cannot be imported ({error}): pip install mem0ai"
            return {"name": "mem0", "ok": False, "detail": detail}
    if telemetry:
        return {"name": "mem0", "ok": False, "detail": "it sends telemetry: MEM0_TELEMETRY=False"}
    return {"name": "mem0", "ok": True, "detail": "imports, telemetry off"}


async def _holder(home: Home, agent: str) -> Check:
    """Who runs the agent now. That somebody does is no problem."""
    found = await holder(home, agent)
    detail = f"held by {found}" if found else "nobody runs the agent now"
    return {"name": "lock", "ok": True, "detail": detail}


async def _agent(options: Options) -> Check:
    try:
        async with opened_without_running(options) as agent:
            if left := await unfinished(agent.store, agent.scope):
                return {"name": "forget", "ok": False, "detail": left}
            return await _inbox(agent)
    except InputError as error:
        return {"name": "agent", "ok": False, "detail": f"it cannot be opened: {error}"}


async def _inbox(agent: AsyncAgent) -> Check:
    """What waits, what was set aside, and whether the emergency stop stands."""
    now = await status(agent.context)
    aside = now["inbox"]["set_aside"]
    lines = [f"{now['inbox']['waiting']:,} waiting"]
    lines += [f"set aside: {one['id']}: {one['error']}" for one in aside]
    if now["emergency_stop"]:
        lines.append("the emergency stop stands (`circadian clear-stop`)")
    ok = not aside and not now["emergency_stop"]
    return {"name": "inbox", "ok": ok, "detail": "; ".join(lines)}
