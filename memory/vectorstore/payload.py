"""Conversion between facts and the payloads that Mem0 stores in the table. Pure."""

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
"""Optional fields that nights add to a fact."""
_METADATA = tuple(name for name in Fact.__annotations__ if name not in _NOT_IN_PAYLOAD)


def scope_filters(scope: Scope) -> dict[str, str]:
    """A scope as Mem0's ids, escaped one to one: those are never empty and have no whitespace."""
    return {"user_id": _mem0_id(scope.user), "agent_id": _mem0_id(scope.thread)}


def user_filters(scope: Scope) -> dict[str, str]:
    """All agents of the scope's user."""
    return {"user_id": _mem0_id(scope.user)}


def _mem0_id(text: str) -> str:
    return "".join(quote(char) if char.isspace() or char == "%" else char for char in text) or "%"


def fact_filters(scope: Scope, *, include_superseded: bool = True) -> dict[str, object]:
    """The scope's facts: all, or those that hold."""
    held = {} if include_superseded else {"invalid_at": None}
    return {**scope_filters(scope), "kind": "fact", **held}


def checked_draft(draft: FactDraft) -> FactDraft:
    """`draft`, checked: it has a text and a source. Raises InputError."""
    checked = _checked(draft, _DRAFT)
    if not checked["text"].strip():
        raise InputError("a fact has no text")
    if not checked["source_entries"] and not checked["source_events"]:
        raise InputError(f"a fact has no source: {checked['text'][:80]!r}")
    return checked


def checked_fact(fact: Mapping[str, Any]) -> Fact:
    """`fact`, checked. Raises InputError."""
    return _checked(fact, _FACT)


def _checked(record: Mapping[str, Any], form: TypeAdapter[Form]) -> Form:
    """`record`, checked against its form; JSON can say it. Raises InputError."""
    try:
        checked = form.validate_python(record, strict=True)
        json.dumps(checked, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise InputError(f"not a fact: {error}") from error
    return checked


def metadata_of(record: FactDraft) -> dict[str, Any]:
    """The payload beside the text. A draft becomes a valid fact."""
    blank = {"invalid_at": None, "superseded_by": None, "created_at": record["created"]}
    fields = {key: one for key, one in record.items() if key not in _NOT_IN_PAYLOAD}
    return {**blank, **fields, **_terms_of(record), "identity": identity_of(record)}


def _terms_of(record: Mapping[str, Any]) -> dict[str, list[str]]:
    """The index terms of a fact that a night described (A-MEM); else the table's own."""
    beside = [record.get("context") or "", *(record.get("tags") or ())]
    return {"terms": fact_terms(record["text"], beside)} if any(beside) else {}


def identity_of(record: FactDraft) -> str:
    """A digest of the text, without case and extra blanks, and the sources of a fact."""
    text = " ".join(record["text"].casefold().split())
    sources = [sorted(set(record["source_entries"])), sorted(set(record["source_events"]))]
    return blake2b(json.dumps([text, *sources]).encode(), digest_size=16).hexdigest()


def fact_of(row: Row) -> Fact:
    """The fact in a row of the table.

    Fields that nights add are absent where empty, as they were before a night that was undone.
    """
    named = [name for name in _METADATA if name not in _BY_NIGHT or row.payload.get(name)]
    fields = {name: row.payload[name] for name in named}
    counted = {"access_count": row.access_count, "last_access": row.last_access}
    return cast(Fact, {"id": row.id, "text": row.payload["data"], **fields, **counted})


def embedded_text(payload: Mapping[str, Any]) -> str:
    """The text to embed."""
    text = payload.get("embed")
    return str(payload["data"] if text is None else text)
