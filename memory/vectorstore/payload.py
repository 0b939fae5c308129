"""A fact's record and Mem0's payload of it, and what a payload says to the table. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, TypeVar, cast
from urllib.parse import quote

from pydantic import TypeAdapter

from memory.analysis import fact_terms
from memory.errors import InputError
from memory.records import Fact, FactDraft
from memory.scope import Scope
from memory.vectorstore.table import Row

Form = TypeVar("Form")

_DRAFT = TypeAdapter(FactDraft)
_FACT = TypeAdapter(Fact)
_NOT_IN_PAYLOAD = ("id", "text", "access_count", "last_access")
_BY_NIGHT = ("context", "tags", "earlier", "disputed")
"""Fields that a fact has once a night gave them to it."""
_METADATA = tuple(name for name in Fact.__annotations__ if name not in _NOT_IN_PAYLOAD)


def scope_filters(scope: Scope) -> dict[str, str]:
    """A scope as Mem0's ids, which may not be empty nor hold whitespace: escaped, one to one."""
    return {"user_id": _mem0_id(scope.user), "agent_id": _mem0_id(scope.thread)}


def user_filters(scope: Scope) -> dict[str, str]:
    """All agents of the scope's user."""
    return {"user_id": _mem0_id(scope.user)}


def _mem0_id(text: str) -> str:
    return "".join(quote(one) if one.isspace() or one == "%" else one for one in text) or "%"


def fact_filters(scope: Scope, *, include_superseded: bool = True) -> dict[str, object]:
    """The scope's facts: those that hold, or all."""
    held = {} if include_superseded else {"invalid_at": None}
    return {**scope_filters(scope), "kind": "fact", **held}


def checked_draft(draft: FactDraft) -> FactDraft:
    """`draft`, if it is one, with a text and a source. Raises InputError."""
    checked = _checked(draft, _DRAFT)
    if not checked["text"].strip():
        raise InputError("a fact has no text")
    if not checked["source_entries"] and not checked["source_events"]:
        raise InputError(f"a fact has no source: {checked['text'][:80]!r}")
    return checked


def checked_fact(fact: Mapping[str, Any]) -> Fact:
    """`fact`, if it is one. Raises InputError."""
    return _checked(fact, _FACT)


def _checked(record: Mapping[str, Any], form: TypeAdapter[Form]) -> Form:
    """`record` in its form, of text and numbers that can be stored. Raises InputError."""
    try:
        checked = form.validate_python(record, strict=True)
        json.dumps(checked, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise InputError(f"not a fact: {error}") from error
    return checked


def metadata_of(record: FactDraft) -> dict[str, Any]:
    """What goes beside the text into Mem0's payload. A draft becomes a fact that is valid."""
    blank = {"invalid_at": None, "superseded_by": None, "created_at": record["created"]}
    fields = {key: one for key, one in record.items() if key not in _NOT_IN_PAYLOAD}
    return {**blank, **fields, **_terms_of(record), "identity": identity_of(record)}


def _terms_of(record: Mapping[str, Any]) -> dict[str, list[str]]:
    """What a fact is found by, where a night described it (A-MEM); else the table sees to it."""
    beside = [record.get("context") or "", *(record.get("tags") or ())]
    return {"terms": fact_terms(record["text"], beside)} if any(beside) else {}


def identity_of(record: FactDraft) -> str:
    """The same for two facts of one text, whatever its case and blanks, from the same sources."""
    text = " ".join(record["text"].casefold().split())
    sources = [sorted(set(record["source_entries"])), sorted(set(record["source_events"]))]
    return blake2b(json.dumps([text, *sources]).encode(), digest_size=16).hexdigest()


def fact_of(row: Row) -> Fact:
    """The fact that a row of the table holds.

    What nights add is left out where there is none, as it was before a night that is taken back.
    """
    named = [name for name in _METADATA if name not in _BY_NIGHT or row.payload.get(name)]
    fields = {name: row.payload[name] for name in named}
    counted = {"access_count": row.access_count, "last_access": row.last_access}
    return cast(Fact, {"id": row.id, "text": row.payload["data"], **fields, **counted})


def embedded_text(payload: Mapping[str, Any]) -> str:
    """What of a memory is embedded."""
    text = payload.get("embed")
    return str(payload["data"] if text is None else text)
