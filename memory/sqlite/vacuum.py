"""How much free space of an SQLite file to return to the file system."""

from __future__ import annotations

FREE_PAGES_KEPT = 64
"""Free pages that a file may keep however small it is (256 kB)."""

VACUUM_PAGES = 256
"""Pages returned to the file system at one time, at most (1 MB)."""


def pages_to_free(free: int, total: int) -> int:
    """Free pages to return now: those beyond a quarter of the file, in small steps.

    Some stay free, since the next checkpoint fills them at no cost.
    """
    return min(max(0, free - max(FREE_PAGES_KEPT, total // 4)), VACUUM_PAGES)
