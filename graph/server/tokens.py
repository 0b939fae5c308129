"""Users' tokens: JWTs (RFC 7519), made by `circadian token` or by an identity provider."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import jwt

from graph.server.settings import Serving
from memory.errors import InputError, ServerError, TokenError

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
