"""Users' tokens: JWTs (RFC 7519), made by `circadian token` or by an identity provider."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import jwt

from graph.server.settings import Serving
from memory.errors import InputError, TokenError

SHARED = "HS256"
PUBLIC = ("EdDSA", "ES256", "RS256")

OPERATOR = "operator"
"""The permission to see the server's metrics and health."""

LEEWAY = 10
"""Seconds by which two clocks may differ."""

LONGEST_USER = 200


class User(NamedTuple):
    """The user of a token."""

    name: str
    permissions: tuple[str, ...]


def user_of(token: str, serving: Serving) -> User:
    """The user of a token. Raises TokenError if it is broken, forged or expired."""
    key, algorithms = _key(serving)
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=algorithms,
            issuer=serving.token_issuer,
            audience=serving.token_audience,
            leeway=LEEWAY,
            options={"require": ["sub", "exp"], "verify_aud": serving.token_audience is not None},
        )
    except jwt.InvalidTokenError as error:
        raise TokenError(f"the token is not valid: {error}") from error
    name, permissions = claims["sub"], claims.get("permissions", [])
    if not is_user(name):
        raise TokenError(f"the token names no user: at most {LONGEST_USER} printable characters")
    if not isinstance(permissions, list):
        raise TokenError("the token's permissions are no list")
    return User(name, tuple(one for one in permissions if isinstance(one, str)))


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
        raise InputError(f"{name!r:.60} is no user: at most {LONGEST_USER} printable characters")
    if serving.token_secret is None:
        raise InputError(
            "set CIRCADIAN_TOKEN_SECRET (32 characters or more) to sign tokens with; with "
            "CIRCADIAN_TOKEN_KEY they come from whoever has the private key"
        )
    claims: dict[str, object] = {"sub": name, "iat": now, "exp": now + timedelta(days=days)}
    if operator:
        claims["permissions"] = [OPERATOR]
    if serving.token_issuer:
        claims["iss"] = serving.token_issuer
    if serving.token_audience:
        claims["aud"] = serving.token_audience
    return jwt.encode(claims, serving.token_secret.get_secret_value(), algorithm=SHARED)


def check(serving: Serving) -> None:
    """Raise InputError if the key cannot be read, before the first token arrives."""
    if serving.token_secret is not None and serving.token_key is not None:
        raise InputError("set one of CIRCADIAN_TOKEN_SECRET and CIRCADIAN_TOKEN_KEY, not both")
    if not serving.open:
        _key(serving)


def _key(serving: Serving) -> tuple[str, list[str]]:
    """The key and its algorithms; the token never chooses the algorithm."""
    if serving.token_secret is not None:
        return serving.token_secret.get_secret_value(), [SHARED]
    assert serving.token_key is not None
    return _read(serving.token_key), list(PUBLIC)


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"CIRCADIAN_TOKEN_KEY: {path} cannot be read: {error}") from error
    if "PUBLIC KEY" not in text:
        raise InputError(f"CIRCADIAN_TOKEN_KEY: {path} holds no PEM public key")
    return text
