"""A server's variables: how users prove who they are, what each may use, how it shuts down.

The server's modules share HELD, ERASED and INTERNAL_HOST here, because LangGraph Server loads some
modules twice. What the variables decide is here, too: which settings users may choose, where
requests may come from, and users' tokens (JWTs, RFC 7519), from `circadian token` or elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, NamedTuple

import jwt
from pydantic import BaseModel, BeforeValidator, Field, SecretStr, ValidationError, field_validator
from starlette.datastructures import URL, Headers
from starlette.types import Scope

from memory.errors import InputError, ServerError, TokenError, explained
from memory.settings import Settings, from_environment

AGENT = "agent"
"""The metadata key of the agent's name, on threads that were requested by name."""

GRAPH = "agent"
"""The graph's name in langgraph.json."""

LEAST_SECRET = 32
"""Bytes of a secret that signs tokens: the size of its hash (RFC 7518, section 3.2)."""

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""The host names of an open server. Under another name that resolves to this machine, a foreign
page could reach it."""

STUDIO = "https://smith.langchain.com"
"""The one page elsewhere that a browser may let talk to the server, as langgraph.json says too."""

INSPECT = "/circadian/inspect"
"""Where the pages are."""

HELD: set[str] = set()
"""Threads whose agents are being changed: no run of theirs may begin."""

ERASED: set[str] = set()
"""Users whose whole memory is being erased: no run of theirs may begin."""

INTERNAL_HOST = f"circadian-{token_hex(16)}"
"""The client host of requests that our own routes send within this process. It is random, because a
proxy's header may name any host."""

USERS_OWN = frozenset(
    [
        "user_prompt",
        "persona",
        "names",
        "assistants",
        "permitted_senders",
        "channels",
        "channel_privacy",
        "room_default",
        "enabled",
        "time_zone",
        "sleep_schedule_enabled",
        "sleep_start_hour",
        "sleep_duration_hours",
        "memory_enabled",
        "recall_limit",
        "recall_weight_recency",
        "recall_weight_importance",
        "recall_weight_trust",
        "recall_weight_links",
        "min_source_trust",
        "stale_conversation_hours",
    ]
)
"""The settings that a server's users choose for their own agents. All others cost the operator, or
protect somebody."""


def _words(given: object) -> object:
    if not isinstance(given, str):
        return given
    return [word.strip() for word in given.split(",") if word.strip()]


Words = Annotated[frozenset[str], BeforeValidator(_words)]


class Serving(BaseModel):
    """A server's `CIRCADIAN_` variables. Without secret and key, every request is `local`'s."""

    token_secret: SecretStr | None = Field(
        None,
        min_length=LEAST_SECRET,
        description="Signs and checks users' tokens (HS256); `circadian token` makes them.",
    )
    token_key: Path | None = Field(
        None, description="A PEM file with the token issuer's public key (EdDSA, ES256, RS256)."
    )
    token_jwks: str | None = Field(
        None,
        pattern=r"^(https://|http://(127\.0\.0\.1|localhost)[:/])",
        description="The address of the token issuer's key set (JWKS); keys may rotate.",
    )
    token_issuer: str | None = Field(None, description="The `iss` that a token must have.")
    token_audience: str | None = Field(None, description="The `aud` that a token must have.")
    requests_per_minute: int | None = Field(
        None, ge=1, description="Requests that a user may make a minute. None: no limit."
    )
    limits_storage: str = Field(
        "memory://",
        description="Where requests are counted; `redis://host:6379` for several replicas.",
    )
    memories_per_user: int | None = Field(
        None,
        ge=1,
        description="Most journal entries and waiting events of one user. None: no limit.",
    )
    allowed_hosts: Words = Field(
        frozenset(),
        description="Host names that requests may be sent to, between commas; default: any with "
        "tokens, else those of the loopback address.",
    )
    user_tokens_per_day: int | None = Field(
        None, ge=1, description="Model tokens of all agents of a user a day (UTC). None: no limit."
    )
    events_per_request: int = Field(
        100, ge=1, description="Events and messages that one request may bring."
    )
    events_waiting: int = Field(
        1_000, ge=1, description="Events that may wait in an agent's inbox."
    )
    user_settings: Words = Field(
        frozenset(),
        description="More settings that users may set for their agents, between commas.",
    )
    user_models: Words = Field(
        frozenset(), description="Models that users may name in `compact_model`, between commas."
    )
    stop_seconds: float = Field(
        25.0,
        ge=0,
        le=3_600,
        description="How long a server that shuts down waits for steps in hand before it "
        "interrupts them. Set it below its supervisor's own limit.",
    )

    @field_validator("user_settings")
    @classmethod
    def _known(cls, names: frozenset[str]) -> frozenset[str]:
        if unknown := sorted(names - set(Settings.model_fields)):
            raise ValueError(f"there is no setting {unknown[0]!r:.60}")
        return names

    @property
    def hosts(self) -> frozenset[str] | None:
        """The host names of the server that requests may use. None: any."""
        return self.allowed_hosts or (LOOPBACK if self.open else None)

    @property
    def users_may_set(self) -> frozenset[str]:
        """The settings that a run's context may have; on an open server all."""
        if self.open:
            return frozenset(Settings.model_fields)
        models = {"compact_model"} if self.user_models else set()
        return USERS_OWN | self.user_settings | models

    @property
    def open(self) -> bool:
        """Whether requests need no token."""
        return self.token_secret is None and self.token_key is None and self.token_jwks is None


def serving_variables() -> Serving:
    """The variables as they are now. Raises InputError if one is invalid."""
    return from_environment(Serving)


@lru_cache(maxsize=1)
def serving() -> Serving:
    """This process's variables, read once. Raises as `serving_variables`."""
    return serving_variables()


# What the operator decides: which settings a request may bring, and from where it may come
#
# Settings come with a run, an assistant or a schedule. A setting that is not the user's to choose,
# is misspelt or has an invalid value is refused before anything is stored; `memory.runtime` refuses
# the same for what was stored earlier.


FORBIDDEN, INVALID, FULL = 403, 422, 507

FROM_CONTEXT = "__context_provided__"
"""LangGraph Server's mark on a run's `configurable` that was copied from its context."""

LANGGRAPHS = re.compile(
    r"(thread|run|user|assistant|graph|cron)_id|(checkpoint|langgraph|langsmith|ls|_)_.*|x-.*"
)
"""Keys of a `configurable` that are LangGraph's own, or a tracer's."""


def refused_settings(
    given: Mapping[str, Any], serving: Serving, *, run: bool = False
) -> tuple[int, str] | None:
    """The status and the reason to refuse a request's settings; None to accept.

    `given` has `context`, `config` or both, as an assistant, a schedule or a run has them.
    """
    context = given.get("context") or {}
    configurable = (given.get("config") or {}).get("configurable") or {}
    if not isinstance(context, Mapping) or not isinstance(configurable, Mapping):
        return INVALID, "`context` and `config.configurable` are objects"
    # A run without a context has a copy of its `configurable` as one: see `ignored_settings`.
    langgraphs = set(filter(LANGGRAPHS.fullmatch, configurable))
    names = configurable.keys() - langgraphs if not run else set()
    names |= context.keys() if not run or FROM_CONTEXT in configurable else set()
    if unknown := _unknown(names):
        return INVALID, unknown[0]
    asked = {
        name: value
        for name, value in (*configurable.items(), *context.items())
        if name in Settings.model_fields
    }
    return _refused_values(asked, serving)


def ignored_settings(run: Mapping[str, Any]) -> list[str]:
    """What a run's `configurable` has beside settings and LangGraph's own keys.

    It is no error: a `RemoteGraph` passes on whatever its caller's `configurable` has.
    """
    configurable, copied = (run.get("config") or {}).get("configurable"), run.get("context") or {}
    if FROM_CONTEXT in (configurable or {}):
        return []
    return _unknown(name for name in copied if not LANGGRAPHS.fullmatch(name))


def _unknown(names: Iterable[str]) -> list[str]:
    found = []
    for name in sorted(set(names) - Settings.model_fields.keys()):
        close = get_close_matches(name, Settings.model_fields, 1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        found.append(f"there is no setting {name!r:.60}{meant}")
    return found


def _refused_values(asked: Mapping[str, Any], serving: Serving) -> tuple[int, str] | None:
    may = serving.users_may_set
    if others := sorted(asked.keys() - may):
        decides = f"the operator of this server decides on {', '.join(others)}"
        return FORBIDDEN, f"{decides}; you may set {', '.join(sorted(may))}"
    try:
        settings = Settings.model_validate(dict(asked))
    except ValidationError as error:
        return INVALID, "; ".join(explained(error.errors()))
    model = settings.compact_model
    if model is not None and not serving.open and model not in serving.user_models:
        allowed = ", ".join(sorted(serving.user_models))
        return FORBIDDEN, f"compact_model: you may choose one of {allowed}"
    return None


def why_foreign(scope: Scope, serving: Serving) -> str | None:
    """Why a request is refused for its host or its origin; None to accept.

    A foreign page reaches a server on a developer's machine through the browser there: with a form,
    or under a name of its own that leads to the loopback address. On an open server nothing else
    would stop the page.
    """
    here = URL(scope=scope)
    if serving.hosts is not None and here.hostname not in serving.hosts:
        return (
            f"{here.hostname or ''!r:.80} is no host name of this server; "
            "CIRCADIAN_ALLOWED_HOSTS lists its names"
        )
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if not serving.open or origin in (None, STUDIO) or URL(origin or "").netloc == here.netloc:
        return None
    return f"pages of {origin!r:.80} may not use this server"


SHARED = "HS256"
PUBLIC = ("EdDSA", "ES256", "RS256")

OPERATOR = "operator"
"""The permission to see the server's metrics and health."""

LEEWAY = 10
"""Seconds by which two clocks may differ."""

KEYS_SECONDS = 300
"""Seconds for which a withdrawn key of a key set may still be accepted."""

KEYS_TIMEOUT = 5

LONGEST_USER = 200


class User(NamedTuple):
    """The user of a token."""

    name: str
    permissions: tuple[str, ...]
    id: str | None = None
    """Its `jti`."""
    issued: float = 0.0
    """Its `iat`, in seconds since the epoch; 0 if it does not say."""


def user_of(token: str, serving: Serving) -> User:
    """The user of a token. Raises TokenError if it is broken, forged or expired.

    Raises ServerError if the issuer's keys cannot be fetched, so that nobody knows.
    """
    try:
        key, algorithms = _key(serving, token)
        claims = jwt.decode(
            token,
            key,
            algorithms=algorithms,
            issuer=serving.token_issuer,
            audience=serving.token_audience,
            leeway=LEEWAY,
            options={"require": ["sub", "exp"], "verify_aud": serving.token_audience is not None},
        )
    except jwt.PyJWKClientConnectionError as error:
        raise ServerError("the keys of the tokens' issuer cannot be fetched") from error
    except jwt.PyJWTError as error:
        raise TokenError(f"the token is not valid: {error}") from error
    name, permissions = claims["sub"], claims.get("permissions", [])
    if not is_user(name):
        raise TokenError(f"the token names no user: at most {LONGEST_USER} printable characters")
    if not isinstance(permissions, list):
        raise TokenError("the token's permissions are not a list")
    id_, issued = claims.get("jti"), claims.get("iat")
    return User(
        name,
        tuple(one for one in permissions if isinstance(one, str)),
        id_ if isinstance(id_, str) else None,
        float(issued) if isinstance(issued, int | float) else 0.0,
    )


def is_user(name: object) -> bool:
    """Whether a text can name a user."""
    return (
        isinstance(name, str)
        and 0 < len(name.strip()) == len(name) <= LONGEST_USER
        and name.isprintable()
    )


def token_for(name: str, serving: Serving, *, now: datetime, days: float, operator: bool) -> str:
    """A token for the user `name`, valid for `days`."""
    if not is_user(name):
        raise InputError(f"{name!r:.60} is not a user: at most {LONGEST_USER} printable characters")
    if serving.token_secret is None:
        raise InputError(
            "set CIRCADIAN_TOKEN_SECRET (32 characters or more) to sign tokens with; with "
            "CIRCADIAN_TOKEN_KEY they come from whoever has the private key"
        )
    until = now + timedelta(days=days)
    made = blake2b(f"{now.isoformat()} {until.isoformat()} {name}".encode(), digest_size=8)
    claims: dict[str, object] = {"sub": name, "iat": now, "exp": until, "jti": made.hexdigest()}
    if operator:
        claims["permissions"] = [OPERATOR]
    if serving.token_issuer:
        claims["iss"] = serving.token_issuer
    if serving.token_audience:
        claims["aud"] = serving.token_audience
    return jwt.encode(claims, serving.token_secret.get_secret_value(), algorithm=SHARED)


def check(serving: Serving) -> None:
    """Raise InputError if the key cannot be read, before the first token arrives."""
    ways = (serving.token_secret, serving.token_key, serving.token_jwks)
    if sum(way is not None for way in ways) > 1:
        raise InputError(
            "set one of CIRCADIAN_TOKEN_SECRET, CIRCADIAN_TOKEN_KEY and CIRCADIAN_TOKEN_JWKS"
        )
    if serving.token_key is not None:
        _read(serving.token_key)


def _key(serving: Serving, token: str) -> tuple[Any, list[str]]:
    """The key and its algorithms; the token never chooses the algorithm. May block."""
    if serving.token_secret is not None:
        return serving.token_secret.get_secret_value(), [SHARED]
    if serving.token_jwks is not None:
        return _key_set(serving.token_jwks).get_signing_key_from_jwt(token).key, list(PUBLIC)
    assert serving.token_key is not None
    return _read(serving.token_key), list(PUBLIC)


@lru_cache(maxsize=1)
def _key_set(address: str) -> jwt.PyJWKClient:
    """The issuer's keys: kept for a while, and asked for again when a token names a new one."""
    return jwt.PyJWKClient(address, lifespan=KEYS_SECONDS, timeout=KEYS_TIMEOUT)


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"CIRCADIAN_TOKEN_KEY: {path} cannot be read: {error}") from error
    if "PUBLIC KEY" not in text:
        raise InputError(f"CIRCADIAN_TOKEN_KEY: {path} holds no PEM public key")
    return text
