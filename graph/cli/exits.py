"""How a command ends: its exit status, and one line on stderr if it failed.

A module of its own because it is light to import: Ctrl-C is no traceback even while everything else
is imported.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def fail(message: str, status: int) -> int:
    """Write `message` as one line on stderr; returns `status`."""
    sys.stderr.write(f"circadian: {' '.join(message.split())}\n")
    return status


def interrupted() -> int:
    """Report a Ctrl-C, which is no error: nothing that was received is lost."""
    return fail(
        "interrupted; whatever was received is kept, the next run goes on", status=INTERRUPTED
    )
