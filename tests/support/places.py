"""Where tests keep their files: in memory, where the machine has such a place with room."""

import os
import shutil
from pathlib import Path

ROOM = 2 << 30
"""Bytes that must be free there: some hundred MB are used at a time, and a machine has others."""

_IN_MEMORY = Path("/dev/shm")


def in_memory(place: Path = _IN_MEMORY, room: int = ROOM) -> Path | None:
    """The folder that is memory, or None where there is none to write to with room for a run.

    What a killed process wrote there stays, as it does on a disk. A power cut is no test's matter,
    so that waiting for a disk, which the product does at every commit, tells a test nothing.
    """
    if not os.access(place, os.W_OK) or shutil.disk_usage(place).free < room:
        return None
    return place
