"""Circuit breakers: a service that keeps failing is left alone for a while (Nygard, Release It!).

Closed, calls pass. After a number of failures in a row it is open, and calls fail at once. After
some seconds it is half open: one call tries the service, and closes or opens it again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from purgatory.domain.model import Context, OpenedState

from memory.errors import CircuitOpen

T = TypeVar("T")

BreakerState = Literal["closed", "open", "half_open"]
_STATES: dict[str, BreakerState] = {
    "closed": "closed",
    "opened": "open",
    "half-opened": "half_open",
}


class Breaker:
    """The breaker of one service of one process."""

    def __init__(self, service: str, *, failures: int = 3, seconds: float = 30.0) -> None:
        self.service = service
        self._context = Context(service, failures, seconds)
        self._trying = False
        """A call is trying the service out; others fail until it is known how that went."""

    @property
    def state(self) -> BreakerState:
        """As it stands; an open one turns half open with the first call after its time."""
        return _STATES[self._context.state]

    async def call(self, send: Callable[[], Awaitable[T]], *, failure: type[Exception]) -> T:
        """What `send` gives. Only errors of the type `failure` count against the service.

        Any other error shows that the service answers; a cancelled call shows nothing.

        Raises:
            CircuitOpen: the service is left alone; no call was made.
        """
        self._enter()
        trying = self._trying = self.state == "half_open"
        try:
            result = await send()
        except asyncio.CancelledError:
            raise
        except failure as error:
            self._context.handle_exception(error)
            raise
        except Exception:
            self._context.handle_end_request()
            raise
        else:
            self._context.handle_end_request()
            return result
        finally:
            self._context.messages.clear()
            if trying:
                self._trying = False

    def _enter(self) -> None:
        if self._trying:
            raise CircuitOpen(self._line(0))
        try:
            self._context.handle_new_request()
        except OpenedState as opened:
            left = opened.opened_at + self._context.ttl - time.time()
            raise CircuitOpen(self._line(left)) from None

    def _line(self, seconds: float) -> str:
        when = f"in {max(1, round(seconds))} s" if seconds > 0 else "in a moment"
        return (
            f"the {self.service} failed {self._context.threshold} times in a row and is left alone "
            f"for now; it is tried again {when}"
        )


@dataclass(frozen=True)
class Breakers:
    """The breakers of one data folder's services."""

    model: Breaker
    embedder: Breaker
    memory: Breaker

    @classmethod
    def of(cls, *, failures: int = 3, seconds: float = 30.0) -> Breakers:
        """Three closed ones."""
        return cls(
            *(
                Breaker(service, failures=failures, seconds=seconds)
                for service in ("model", "embedder", "memory")
            )
        )
