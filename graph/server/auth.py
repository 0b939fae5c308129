"""Who asks a server, and what is theirs: LangGraph Server calls this for every request.

Each user has a token (`graph.server.tokens`). Their threads, schedules and assistants carry their
name as `owner`, their memory lies under it in the store. Without a secret and a key all is open,
and everybody is `local`: a developer's server, on a loopback address.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import UUID

from langgraph_sdk import Auth, get_client
from langgraph_sdk.errors import NotFoundError

from graph.server import limits, tokens
from memory import access
from memory.errors import TokenError
from memory.resources import process_now
from memory.scope import LOCAL_USER
from memory.serving import Serving, serving_variables

auth = Auth()

Context = Auth.types.AuthContext
Filter = dict[str, Any] | None


@lru_cache(maxsize=1)
def serving() -> Serving:
    """The server's variables, read once. Raises InputError where a key cannot be used."""
    found = serving_variables()
    tokens.check(found)
    limits.check(found)
    return found


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    """The user of a token: `Authorization: Bearer TOKEN`, or `X-Api-Key: TOKEN`."""
    if serving().open:
        return {"identity": LOCAL_USER, "permissions": [tokens.OPERATOR]}
    token = _token(headers)
    if token is None:
        raise _refused(401, "no token: send it as `Authorization: Bearer TOKEN` or `X-Api-Key`")
    try:
        user = tokens.user_of(token, serving())
    except TokenError as error:
        raise _refused(401, str(error)) from error
    return {"identity": user.name, "permissions": list(user.permissions)}


@auth.on
async def nothing_else(ctx: Context, value: Any) -> Filter:
    """What no rule below is about is refused."""
    return None if serving().open else _deny(f"{ctx.resource} {ctx.action}")


@auth.on.threads
async def threads(ctx: Context, value: Any) -> Filter:
    """Read, search, change and delete: one's own."""
    return None if serving().open else access.owned(ctx.user.identity)


@auth.on.threads.create
async def create_thread(ctx: Context, value: Auth.types.ThreadsCreate) -> Filter:
    """A new thread is one's own; nobody takes the id of another's."""
    if serving().open:
        return None
    user, metadata = ctx.user.identity, value.setdefault("metadata", {})
    await _check_free(user, UUID(str(value["thread_id"])), metadata)
    metadata[access.OWNER] = user
    return access.owned(user)


@auth.on.threads.create_run
async def create_run(ctx: Context, value: Auth.types.RunsCreate) -> Filter:
    """A run is of a thread: an agent without one would leave memory that nobody finds again."""
    if value.get("thread_id") is None:
        raise _refused(422, "an agent is a thread: PUT /circadian/agents/NAME gives it")
    if serving().open:
        return None
    user, metadata = ctx.user.identity, value.setdefault("metadata", {})
    if value.get("if_not_exists") == "create":
        await _check_free(user, UUID(str(value["thread_id"])), metadata)
    await _check_room(user)
    metadata[access.OWNER] = user
    return access.owned(user)


@auth.on.threads.update
async def update_thread(ctx: Context, value: Auth.types.ThreadsUpdate) -> Filter:
    """A thread stays its owner's."""
    if serving().open:
        return None
    _keep_owner(ctx, value)
    return access.owned(ctx.user.identity)


@auth.on.assistants
async def assistants(ctx: Context, value: Any) -> Filter:
    """Change and delete: one's own."""
    if serving().open:
        return None
    _keep_owner(ctx, value)
    return access.owned(ctx.user.identity)


@auth.on.assistants.create
async def create_assistant(ctx: Context, value: Auth.types.AssistantsCreate) -> Filter:
    """An assistant, which is settings of the agent's graph, is its maker's."""
    if serving().open:
        return None
    metadata = value.setdefault("metadata", {})
    if metadata.get("created_by") == "system":
        raise _refused(403, "an assistant that a user makes is not the server's own")
    metadata[access.OWNER] = ctx.user.identity
    return access.owned(ctx.user.identity)


@auth.on.assistants.read
async def read_assistant(ctx: Context, value: Any) -> Filter:
    """One's own, and the one that the server made of the graph."""
    return None if serving().open else access.shared_or_owned(ctx.user.identity)


@auth.on.assistants.search
async def search_assistants(ctx: Context, value: Any) -> Filter:
    """As `read_assistant`."""
    return None if serving().open else access.shared_or_owned(ctx.user.identity)


@auth.on.crons
async def crons(ctx: Context, value: Any) -> Filter:
    """One's own, which stay so."""
    if serving().open:
        return None
    if ctx.action == "update":
        _own_schedule(ctx, value)
    return access.owned(ctx.user.identity)


@auth.on.crons.create
async def create_cron(ctx: Context, value: Auth.types.CronsCreate) -> Filter:
    """A schedule is its maker's, and of a thread, which must be theirs too."""
    if value.get("thread_id") is None:
        raise _refused(422, "a schedule is of an agent's thread: `circadian schedule` makes it")
    if serving().open:
        return None
    value["payload"].setdefault("metadata", {})
    _own_schedule(ctx, value)
    return access.owned(ctx.user.identity)


@auth.on.store
async def store(ctx: Context, value: Any) -> None:
    """One's own memory, to be read. It is changed by the agent, and by the routes made for it."""
    if serving().open:
        return
    user = ctx.user.identity
    if ctx.action == "list_namespaces" and not value.get("namespace"):
        value["namespace"] = access.own_namespace(user)
    if not access.is_own_namespace(user, value.get("namespace")):
        _deny("another's memory")
    if ctx.action in ("put", "delete"):
        _deny("memory is changed through the agent; that")


async def _check_free(user: str, thread: UUID, metadata: Any) -> None:
    """Refuse the id of another user's thread, known to the server or not.

    One's own is known by its agent's name, or by the memory that it has already.
    """
    foreign = access.is_foreign_thread(user, thread, metadata)
    if access.is_derived(thread) and not foreign:
        return
    store = process_now().served_store
    found = await store.alist_namespaces(prefix=("*", str(thread)), max_depth=2)
    if any(not access.is_own_namespace(user, one) for one in found):
        _deny("another's thread")
    if foreign and not found and await _owner_of(thread) != user:
        _deny("a thread id that is made from another name")


async def _owner_of(thread: UUID) -> str | None:
    """Whose thread the server has under this id; asked in this process, round the authentication.

    A run brings no name of its thread's agent, which may have no memory yet.
    """
    try:
        known = await get_client().threads.get(str(thread))
    except NotFoundError:
        return None
    return (known.get("metadata") or {}).get(access.OWNER)


async def _check_room(user: str) -> None:
    if full := await limits.full(user, serving()):
        raise _refused(507, full)


def _own_schedule(ctx: Context, value: Any) -> None:
    """Its own metadata decide who sees it, those of its payload become its runs'."""
    for metadata in (value.get("metadata"), (value.get("payload") or {}).get("metadata")):
        if metadata is not None:
            metadata[access.OWNER] = ctx.user.identity


def _keep_owner(ctx: Context, value: Any) -> None:
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and access.OWNER in metadata:
        metadata[access.OWNER] = ctx.user.identity


def _token(headers: dict[bytes, bytes]) -> str | None:
    bearer = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, token = bearer.partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get(b"x-api-key", b"").decode("latin-1").strip() or None


def _refused(status: int, why: str) -> Exception:
    return Auth.exceptions.HTTPException(status_code=status, detail=why)


def _deny(what: str) -> Filter:
    raise _refused(403, f"{what} is not for you")
