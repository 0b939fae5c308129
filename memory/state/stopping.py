"""Steps: counting the running nodes of a process, and stopping between nodes at shutdown.

LangGraph Server shuts down by cancelling its runs wherever they are, so that the answer a model is
giving is paid for and lost. A server therefore stops the steps first: running ones finish, and new
ones wait until their run is cancelled. The run is then at a checkpoint, and the thread's next run,
such as the server's own at its next start, resumes it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

PAUSE = 0.05
"""Seconds between two checks for running steps."""

SETTLE = 2.0
"""Longest wait, in seconds, for the checkpoint of a run's last step."""


class Steps:
    """The running steps of a process, which may have several threads, each with an event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_hand: dict[str, int] = {}
        """Running steps per thread id. While stopping, 0 until the last step is checkpointed."""
        self._stopping = False

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """Encloses a node's work. Once the process stops, waits to be cancelled instead."""
        thread = _thread()
        if not self._begun(thread):
            await asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            self._ended(thread)

    async def stop(self, seconds: float) -> int:
        """Let no step begin, wait for running ones; return how many runs still have one."""
        with self._lock:
            self._stopping = True
        await _until(lambda: not self._left(), seconds)
        left = self._left()
        # LangGraph checkpoints a step before it begins the next.
        await _until(lambda: self._in_hand.keys() <= left, SETTLE)
        return len(left)

    @property
    def stopping(self) -> bool:
        """Whether no step begins any more."""
        with self._lock:
            return self._stopping

    def start(self) -> None:
        """Let steps begin."""
        with self._lock:
            self._stopping = False
            self._in_hand.clear()

    def _left(self) -> set[str]:
        with self._lock:
            return {thread for thread, steps in self._in_hand.items() if steps}

    def _begun(self, thread: str) -> bool:
        with self._lock:
            steps = self._in_hand.get(thread, 0)
            if not self._stopping:
                self._in_hand[thread] = steps + 1
            elif not steps:
                self._in_hand.pop(thread, None)
            return not self._stopping

    def _ended(self, thread: str) -> None:
        with self._lock:
            steps = self._in_hand.get(thread, 1) - 1
            if steps or self._stopping:
                self._in_hand[thread] = steps
            else:
                self._in_hand.pop(thread, None)


STEPS = Steps()
"""The steps of this process."""


async def _until(reached: Callable[[], bool], seconds: float) -> None:
    """Wait until `reached`, at most `seconds`."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not reached():
        if loop.time() >= end:
            return
        await asyncio.sleep(PAUSE)


def _thread() -> str:
    """The run's thread id; empty for a node that is called by hand."""
    from langgraph.config import get_config  # not loaded where a state is only read

    try:
        return str(get_config().get("configurable", {}).get("thread_id", ""))
    except RuntimeError:
        return ""
