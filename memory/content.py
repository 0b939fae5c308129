"""Content blocks: which of them a message or an event may bring. Pure.

Named as LangChain's standard blocks and OpenAI's chat completions name them. What is not known here
is refused: a provider gives some types, such as `tool_result`, another meaning than words or media.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SOURCES = ("url", "base64", "data", "file_id", "id", "source")
_PAYLOAD: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": _SOURCES,
    "image_url": ("image_url",),
    "audio": _SOURCES,
    "input_audio": ("input_audio",),
    "video": _SOURCES,
    "file": (*_SOURCES, "file", "text"),
}
"""Type of a block -> the keys that hold what it brings; it has one of them at least."""

_BESIDE = ("type", "id", "index")
_OF_MEDIA = (
    "mime_type",
    "mimeType",
    "source_type",
    "filename",
    "name",
    "title",
    "alt",
    "detail",
    "metadata",
)
_STRUCTURED = ("image_url", "input_audio", "file", "source", "metadata")
"""Keys whose value may be an object; the others hold a string or a number."""

_KEY = re.compile(r"[\w-]{1,64}")


def check_block(block: Mapping[str, Any]) -> None:
    """Raise ValueError, which names the type, for a block that is neither text nor media."""
    kind = block.get("type")
    if not isinstance(kind, str):
        raise ValueError("a block must have a type, such as 'text'")
    payload = _PAYLOAD.get(kind)
    if payload is None:
        raise ValueError(
            f"a block of type {kind!r:.80} is not taken; known are {', '.join(_PAYLOAD)}"
        )
    if not isinstance(block.get("text", ""), str):
        raise ValueError("a block's text must be a string")
    known = (*_BESIDE, *payload, *(() if kind == "text" else _OF_MEDIA))
    for key, value in block.items():
        if key not in known:
            raise ValueError(f"a block of type {kind!r} has no {key!r:.80}")
        if not (_is_scalar(value) or (key in _STRUCTURED and _is_flat(value))):
            raise ValueError(f"a block of type {kind!r}: {key!r} is not of the known form")
    if all(block.get(key) is None for key in payload):
        raise ValueError(f"a block of type {kind!r} must have {' or '.join(payload)}")


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_flat(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and _KEY.fullmatch(key) and _is_scalar(one)
        for key, one in value.items()
    )
