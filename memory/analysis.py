"""Index terms: what of a text is looked up. The same rule for what is kept and for a query."""

from __future__ import annotations

from memory.models.words import content_stems, stem, words


def terms(text: str) -> list[str]:
    """The index terms of `text`, in order; all its words where it has no other."""
    return content_stems(text) or [stem(word) for word in words(text)]
