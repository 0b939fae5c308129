"""What a server's operator decides: which settings users may choose, and who may ask from where.

Settings come with a run, an assistant or a schedule. What is not the user's to choose, is misspelt
or has no valid value is refused before anything is stored; `memory.runtime` holds the same line for
what was stored earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import ValidationError
from starlette.datastructures import URL, Headers
from starlette.types import Scope

from graph.server.settings import STUDIO, Serving
from memory.errors import explained
from memory.settings import Settings

FORBIDDEN, INVALID = 403, 422

FROM_CONTEXT = "__context_provided__"
"""LangGraph Server's mark on a run's `configurable` that was copied from its context."""


class Refused(NamedTuple):
    """Why settings are refused, and with which status."""

    status: int
    why: str


def refused(given: Mapping[str, Any], serving: Serving, *, run: bool = False) -> Refused | None:
    """Why a request's settings are refused, if they are.

    `given` has `context`, `config` or both, as an assistant, a schedule or a run has them.
    """
    context = given.get("context") or {}
    configurable = (given.get("config") or {}).get("configurable") or {}
    if not isinstance(context, Mapping) or not isinstance(configurable, Mapping):
        return Refused(INVALID, "`context` and `config.configurable` are objects")
    known = Settings.model_fields
    # A run without a context gets its `configurable` as one, which has much of LangGraph's own.
    unknown = [] if run and FROM_CONTEXT not in configurable else [*(context.keys() - known.keys())]
    if unknown:
        return Refused(INVALID, _unknown(min(unknown)))
    asked = {
        name: value for name, value in (*configurable.items(), *context.items()) if name in known
    }
    return _of_settings(asked, serving)


def _of_settings(asked: Mapping[str, Any], serving: Serving) -> Refused | None:
    may = serving.users_may_set
    if others := sorted(asked.keys() - may):
        return Refused(
            FORBIDDEN,
            f"the operator of this server decides on {', '.join(others)}; "
            f"you may set {', '.join(sorted(may))}",
        )
    try:
        settings = Settings.model_validate(dict(asked))
    except ValidationError as error:
        return Refused(INVALID, "; ".join(explained(error.errors())))
    model = settings.compact_model
    if model is not None and not serving.open and model not in serving.user_models:
        allowed = ", ".join(sorted(serving.user_models))
        return Refused(FORBIDDEN, f"compact_model: you may choose one of {allowed}")
    return None


def _unknown(name: str) -> str:
    close = get_close_matches(name, Settings.model_fields, 1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no setting {name!r:.60}{meant}"


# From where


def why_foreign(scope: Scope, serving: Serving) -> str | None:
    """Why a request may not come from where it says it comes from; None: it may.

    A page elsewhere reaches a server on a developer's machine through the browser there: with a
    form, or under a name of its own that leads to the loopback address. Where there are no tokens,
    nothing else would stop it.
    """
    here = URL(scope=scope)
    if serving.hosts is not None and here.hostname not in serving.hosts:
        return (
            f"this server is not called {here.hostname or ''!r:.80}; "
            "CIRCADIAN_ALLOWED_HOSTS names what it is called"
        )
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if not serving.open or origin in (None, STUDIO) or URL(origin or "").netloc == here.netloc:
        return None
    return f"pages of {origin!r:.80} may not use this server"
