"""Making values safe to keep: without secrets, storable as JSON, and bounded in size.

Logs and audit entries pass through here. Pure, except that `safe` reads the process's environment.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from memory.text.words import regex, shortened

_LONGEST_LINE = 300


def safe(text: str) -> str:
    """`text` on one line of at most 300 characters, without this process's secrets."""
    return shortened(redact(text, os.environ), _LONGEST_LINE)


def error_without_secrets(error: Exception) -> Exception:
    """`error` without the secrets in its words and in those of its causes.

    It is changed in place, since LangGraph keeps what a node raises in the checkpoint and prints it
    with its causes. An error whose words are no arguments becomes a RuntimeError that tells it.
    """
    return _masked(error, secret_values(os.environ), set())


def _masked(error: Exception, secrets: Sequence[str], seen: set[int]) -> Exception:
    seen.add(id(error))
    error.args = tuple(hide(one, secrets) if isinstance(one, str) else one for one in error.args)
    for link in ("__context__", "__cause__"):
        cause = getattr(error, link)
        if isinstance(cause, Exception) and id(cause) not in seen:
            masked = _masked(cause, secrets, seen)
            if masked is not cause:
                setattr(error, link, masked)
    told = f"{error} {error!r}"
    if hide(told, secrets) == told:
        return error
    line = hide(f"{type(error).__name__}: {error}", secrets)
    return RuntimeError(line).with_traceback(error.__traceback__)


_HALVES = regex(r"[\ud800-\udfff]")
_LARGEST = 2**63


def encodable(value: Any) -> Any:
    """JSON from a model as it can be stored: lone surrogates replaced, huge integers as text.

    JSON allows both, but text with lone surrogates cannot be encoded, and a checkpoint holds no
    integers beyond 64 bits.
    """
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return str(value)
    if isinstance(value, list):
        return [encodable(item) for item in value]
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    return value


HIDDEN = "***"

_KEY = regex(
    r"(?i)\b(?:sk|pk|rk|gsk)-[\w*-]{6,}|\bkey-\w{16,}"
    # A word after "Basic" is a key if it looks like base64.
    r"|\bBearer\s+[\w+/=._~-]{8,}|\bBasic\s+(?=\S*(?:[\d=]|(?-i:[a-z][A-Z])))[\w+/=]{8,}"
    # GitHub, GitLab, Slack, Stripe; AWS and Google; signed web tokens; private keys.
    r"|\b(?:gh[oprsu]_|github_pat_|glpat-|xox[a-z]-|xapp-|[srp]k_(?:live|test)_)[\w-]{8,}"
    r"|(?-i:\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{20,}|\beyJ[\w-]{8,999}\.[\w-]{8,}[\w.-]*)"
    # npm, Hugging Face, package registries, DigitalOcean, SendGrid, Telegram, Discord.
    r"|(?-i:\b(?:npm_|hf_|pypi-|do[opr]_v1_)[\w-]{16,}|\bSG\.[\w-]{16,}\.[\w-]{16,}"
    r"|\b\d{8,10}:[\w-]{34,36}(?![\w-])|(?<=/api/webhooks/)\d+/[\w-]{20,}"
    r"|\b[MNO][\w-]{23,30}\.[\w-]{6,7}\.[\w-]{27,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY(?:(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----|(?s:.*))"
)

_GIVEN = regex(
    r"""(?ix)((?:passw(?:or)?d|passphrase|(?:api|access|private|secret|account)[_-]?key|client[_-]?secret)
        ["']?\s*[:=]\s*|(?:secret|token|pwd)["']?(?:=|\s*:\s*(?=["']?[\w./+~-]{16})(?=\S*\d)))
        ("[^"]*"|'[^']*'|[^\s"',;&)}\]]+)"""
)
"""A secret with its name in a text: `password: ...`, `TOKEN=...`, `f(password='...')`."""

_IN_URL = regex(r"(?<=://)([^\s:/@]+):[^\s/@]+@")
_VARIABLE = regex(r"(?:KEY|TOKEN|SECRET|PASSWORD)$")
_WORDS = regex(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")

_SECRET_WORD = regex(
    r"\w*(?:passw(?:or)?d|passphrase|passcode|secret|credential|(?:api|access|private|secret)key)s?"
    r"|\w*token|pwd|auth|authorization|bearer|jwt|cookies?|sessionid"
)
"""Last word of the name of a secret. The plural `tokens` is a count."""

_SECRET_PAIR = regex(
    r"(?:api|access|private|secret|signing|encryption|auth|ssh|session) keys?|session id"
)

_TAILS = {"value", "text", "string", "hash", "header", "base"}
"""Words that may follow in the name of a secret."""

_NAMES, _VALUES = ("name", "key", "field", "header", "variable"), ("value", "values")
"""Keys of records that hold the name of a secret and its value side by side."""

_SHORTEST = 6
"""Shorter values of secret variables stay: hiding them would garble every line."""

_DEEPEST = 20
"""Levels kept: JSON from a model can be nested beyond the recursion limit."""


def redact(text: str, environ: Mapping[str, str]) -> str:
    """`text` without anything like a key, and without the values of secret variables."""
    return hide(text, secret_values(environ))


def redacted(value: Any, environ: Mapping[str, str]) -> Any:
    """`value` as plain JSON without secrets, nor anything called `password` or the like."""
    return _plain(value, secret_values(environ), 0)


def _plain(value: Any, secrets: Sequence[str], depth: int) -> Any:
    if depth > _DEEPEST:
        return "..."
    match value:
        case Mapping():
            by_name = {str(key).lower(): item for key, item in value.items()}
            named = any(
                isinstance(by_name.get(key), str) and _is_secret(by_name[key]) for key in _NAMES
            )
            hidden = {
                key
                for key, item in value.items()
                if item is not None
                and (_is_secret(str(key)) or (named and str(key).lower() in _VALUES))
            }
            return {
                _text(key, secrets): HIDDEN if key in hidden else _plain(item, secrets, depth + 1)
                for key, item in value.items()
            }
        case list() | tuple():
            return [_plain(item, secrets, depth + 1) for item in value]
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case _:
            return _text(value, secrets)


def _is_secret(name: str) -> bool:
    """Whether a field of this name is secret: `dbPassword`, `X-API-Key`, `session`."""
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and words[-1] in _TAILS:
        words.pop()
    if not words:
        return False
    paired = _SECRET_PAIR.fullmatch(" ".join(words[-2:])) is not None
    return words == ["session"] or paired or _SECRET_WORD.fullmatch(words[-1]) is not None


def _text(value: Any, secrets: Sequence[str]) -> str:
    # No store accepts lone surrogates, which JSON from a model may contain.
    return hide(str(value), secrets).encode("utf-8", "replace").decode()


def hide(text: str, secrets: Sequence[str]) -> str:
    """`text` without `secrets` and without anything like a key."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return _GIVEN.sub(rf"\1{HIDDEN}", _KEY.sub(HIDDEN, _IN_URL.sub(rf"\1:{HIDDEN}@", text)))


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Values of secret variables, longest first, because one may contain another."""
    found = {environ[name] for name in environ if _is_secret_variable(name)}
    return tuple(sorted((one for one in found if len(one) >= _SHORTEST), key=len, reverse=True))


@lru_cache(maxsize=512)
def _is_secret_variable(name: str) -> bool:
    return _VARIABLE.search(name.upper()) is not None


def bounded(value: dict[str, Any], most: int) -> dict[str, Any]:
    """`value` in at most `most` (100 or more) characters of JSON.

    Long texts and lists are shortened; if that is not enough, the key `cut` has the beginning.
    """
    for longest in (most, 500, 100):
        shown: dict[str, Any] = _cut(value, longest)
        if len(_json(shown)) <= most:
            return shown
    # Escaped, every quote takes two characters.
    return {"cut": _json(value)[: most // 2 - 20]}


def _cut(value: Any, longest: int) -> Any:
    match value:
        case str() if len(value) > longest:
            return f"{value[:longest]}..."
        case list():
            kept = [_cut(item, longest) for item in value[: longest // 10]]
            return kept if len(kept) == len(value) else [*kept, f"... {len(value)} in all"]
        case dict():
            return {key: _cut(item, longest) for key, item in value.items()}
        case _:
            return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
