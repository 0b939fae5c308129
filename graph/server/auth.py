"""Who sends a request, and what belongs to them: LangGraph Server calls this for every request.

Each user has a token (`graph.server.tokens`). Their threads, schedules and assistants carry their
name as `owner`; their memory lies under their name in the store. Without a secret and a key the
server is open, and everybody is `local`: a developer's server, on a loopback address.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar, cast
from uuid import UUID

from langgraph_sdk import Auth, get_client
from langgraph_sdk.errors import NotFoundError

from graph.server import limits, settings, tokens
from graph.server.settings import serving
from memory.errors import TokenError
from memory.records import LOCAL_USER
from memory.runtime import process_now

auth = Auth()


Context = Auth.types.AuthContext


Filter = dict[str, Any] | None


Rule = TypeVar("Rule", bound=Callable[..., Awaitable[Filter]])


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    """The user of a token: `Authorization: Bearer TOKEN`, or `X-Api-Key: TOKEN`."""
    if serving().open:
        return {"identity": LOCAL_USER, "permissions": [tokens.OPERATOR]}
    token = _token(headers)
    if token is None:
        raise _error(401, "no token: send it as `Authorization: Bearer TOKEN` or `X-Api-Key`")
    try:
        user = tokens.user_of(token, serving())
    except TokenError as error:
        raise _error(401, str(error)) from error
    return {"identity": user.name, "permissions": list(user.permissions)}


def _token(headers: dict[bytes, bytes]) -> str | None:
    bearer = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, token = bearer.partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get(b"x-api-key", b"").decode("latin-1").strip() or None


def _unless_open(rule: Rule) -> Rule:
    """An open server applies no rule."""

    @wraps(rule)
    async def handler(ctx: Context, value: Any) -> Filter:
        return None if serving().open else await rule(ctx, value)

    return cast(Rule, handler)


@auth.on
@_unless_open
async def deny_by_default(ctx: Context, value: Any) -> Filter:
    """Whatever no rule below is about is refused."""
    raise _forbidden(f"{ctx.resource} {ctx.action}")


@auth.on.threads
@_unless_open
async def threads(ctx: Context, value: Any) -> Filter:
    """Users may read, search, change and delete only their own threads."""
    return settings.owned(ctx.user.identity)


@auth.on.threads.create
@_unless_open
async def create_thread(ctx: Context, value: Any) -> Filter:
    """A new thread is its creator's; nobody may take the id of another user's thread."""
    user, metadata = ctx.user.identity, value.setdefault("metadata", {})
    await _check_free(user, UUID(str(value["thread_id"])), metadata)
    metadata[settings.OWNER] = user
    return settings.owned(user)


@auth.on.threads.create_run
async def create_run(ctx: Context, value: Any) -> Filter:
    """A run needs a thread: without one, nobody would find the agent's memory again."""
    if value.get("thread_id") is None:
        raise _error(422, "an agent is a thread: PUT /circadian/agents/NAME gives it")
    if serving().open:
        return None
    user, metadata = ctx.user.identity, value.setdefault("metadata", {})
    if value.get("if_not_exists") == "create":
        await _check_free(user, UUID(str(value["thread_id"])), metadata)
    if full := await limits.full(user, serving()):
        raise _error(507, full)
    metadata[settings.OWNER] = user
    return settings.owned(user)


@auth.on(resources="threads", actions="update")
@auth.on(resources="assistants")
@_unless_open
async def change(ctx: Context, value: Any) -> Filter:
    """Users may change or delete only what they own, and stay its owner."""
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and settings.OWNER in metadata:
        metadata[settings.OWNER] = ctx.user.identity
    return settings.owned(ctx.user.identity)


@auth.on.assistants.create
@_unless_open
async def create_assistant(ctx: Context, value: Any) -> Filter:
    """An assistant, which is settings of the agent's graph, is its creator's."""
    metadata = value.setdefault("metadata", {})
    if metadata.get("created_by") == "system":
        raise _error(403, "an assistant that a user makes is not the server's own")
    metadata[settings.OWNER] = ctx.user.identity
    return settings.owned(ctx.user.identity)


@auth.on(resources="assistants", actions=["read", "search"])
@_unless_open
async def see_assistants(ctx: Context, value: Any) -> Filter:
    """Users see their own assistants, and the one that the server made of the graph."""
    return settings.shared_or_owned(ctx.user.identity)


@auth.on.crons
async def crons(ctx: Context, value: Any) -> Filter:
    """Users may access only their own schedules, each of a thread that must be theirs too."""
    if ctx.action == "create" and value.get("thread_id") is None:
        raise _error(422, "a schedule is of an agent's thread: `circadian schedule` makes it")
    if serving().open:
        return None
    if ctx.action in ("create", "update"):
        # Its own metadata decide who sees it; those of its payload become its runs' metadata.
        if ctx.action == "create":
            value["payload"].setdefault("metadata", {})
        for metadata in (value.get("metadata"), (value.get("payload") or {}).get("metadata")):
            if metadata is not None:
                metadata[settings.OWNER] = ctx.user.identity
    return settings.owned(ctx.user.identity)


@auth.on.store
@_unless_open
async def store(ctx: Context, value: Any) -> Filter:
    """Users may read only their own memory. The agent, and the routes made for it, change it."""
    user = ctx.user.identity
    if ctx.action == "list_namespaces" and not value.get("namespace"):
        value["namespace"] = settings.own_namespace(user)
    if not settings.is_own_namespace(user, value.get("namespace")):
        raise _forbidden("another's memory")
    if ctx.action in ("put", "delete"):
        raise _forbidden("memory is changed through the agent; that")
    return None


async def _check_free(user: str, thread: UUID, metadata: Any) -> None:
    """Refuse the id of another user's thread, even if the server does not know that thread.

    A user's own id is recognised by the agent's name, or by memory that the agent already has.
    """
    foreign = settings.is_foreign_thread(user, thread, metadata)
    if settings.is_derived(thread) and not foreign:
        return
    memory = process_now().served_store
    found = await memory.alist_namespaces(prefix=("*", str(thread)), max_depth=2)
    if any(not settings.is_own_namespace(user, namespace) for namespace in found):
        raise _forbidden("another's thread")
    if foreign and not found and await _owner_of(thread) != user:
        raise _forbidden("a thread id that is made from another name")


async def _owner_of(thread: UUID) -> str | None:
    """The owner of a thread as the server knows it; asked in this process, past authentication.

    A run does not name its thread's agent, and that agent may have no memory yet.
    """
    try:
        known = await get_client().threads.get(str(thread))
    except NotFoundError:
        return None
    return (known.get("metadata") or {}).get(settings.OWNER)


def _error(status: int, why: str) -> Exception:
    return Auth.exceptions.HTTPException(status_code=status, detail=why)


def _forbidden(what: str) -> Exception:
    return _error(403, f"{what} is not for you")
