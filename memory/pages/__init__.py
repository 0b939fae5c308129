"""Pages: what holds now of a person, a thing or a project, a short list of facts."""

from memory.pages.pages import (
    MOST_TOKENS,
    PAGES,
    ShownLine,
    ShownPage,
    everything,
    made,
    project_id,
    puts_after,
    read,
    shown,
)

__all__ = [
    "MOST_TOKENS",
    "PAGES",
    "ShownLine",
    "ShownPage",
    "everything",
    "made",
    "project_id",
    "puts_after",
    "read",
    "shown",
]
