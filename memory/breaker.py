"""Circuit breakers: a service that keeps failing is left alone for a while (Nygard, Release It!).

Closed, calls pass. After a number of failures in a row it is open, and calls fail at once. After
some seconds it is half open: one call tries the service, and closes or opens it again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from purgatory.domain.messages.events import ContextChanged
from purgatory.domain.model import Context, OpenedState

from memory.errors import CircadianError, CircuitOpen
from memory.settings import Deployment

T = TypeVar("T")

BreakerState = Literal["closed", "open", "half_open"]
_STATES: dict[str, BreakerState] = {
    "closed": "closed",
    "opened": "open",
    "half-opened": "half_open",
}

log = logging.getLogger("circadian.breaker")


class Breaker:
    """The breaker of one service of one process, for one event loop.

    Between looking at the state and changing it nothing is awaited, and no lock is taken.
    """

    def __init__(self, service: str, *, failures: int = 3, seconds: float = 30.0) -> None:
        self.service = service
        self._context = Context(service, failures, seconds)
        self._trying = False
        """A call is trying the service out; others fail until it is known how that went."""
        self._last = ""
        """How it failed last."""

    @property
    def state(self) -> BreakerState:
        """What the next call would meet: once its time is over, an open one is half open."""
        state = _STATES[self._context.state]
        return "half_open" if state == "open" and self._seconds_left() <= 0 else state

    async def call(self, send: Callable[[], Awaitable[T]], *, failure: type[Exception]) -> T:
        """What `send` gives. Only errors of the type `failure` count against the service.

        Any other error of `memory.errors` shows that the service answers; a bug or a cancelled
        call shows nothing, and leaves the breaker as it is.

        Raises:
            CircuitOpen: the service is left alone; no call was made.
        """
        trying = self._enter()
        try:
            result = await send()
        except failure as error:
            self._ended(trying, error)
            raise
        except CircadianError:
            self._ended(trying)
            raise
        else:
            self._ended(trying)
            return result
        finally:
            if trying:
                self._trying = False

    def _enter(self) -> bool:
        """Whether this call is the one that tries the service out."""
        if self._trying:
            raise CircuitOpen(self._line("it is being tried again now"))
        try:
            self._context.handle_new_request()
        except OpenedState as opened:
            # It is the state itself that is raised: what it held on to would grow with each call.
            opened.with_traceback(None)
            left = max(1, round(self._seconds_left()))
            raise CircuitOpen(self._line(f"it is tried again in {left} s")) from None
        self._trying = _STATES[self._context.state] == "half_open"
        return self._trying

    def _ended(self, trying: bool, error: Exception | None = None) -> None:
        """Count how a call ended. One that began before the service was left alone decides nothing
        while another tries it out.
        """
        if _STATES[self._context.state] == "half_open" and not trying:
            return
        if error is None:
            self._context.handle_end_request()
        else:
            self._last = str(error)
            self._context.handle_exception(error)
        self._tell()

    def _tell(self) -> None:
        """Log that it opened or closed."""
        for change in self._context.messages:
            if not isinstance(change, ContextChanged) or change.state == "half-opened":
                continue
            fields = {"circadian": {"service": self.service, "state": _STATES[change.state]}}
            if change.state == "opened":
                line = "the %s failed too often and is left alone for %g s"
                log.warning(line, self.service, self._context.ttl, extra=fields)
            else:
                log.info("the %s answers again", self.service, extra=fields)
        self._context.messages.clear()

    def _seconds_left(self) -> float:
        opened_at = self._context.opened_at
        return 0.0 if opened_at is None else opened_at + self._context.ttl - time.time()

    def _line(self, when: str) -> str:
        most = self._context.threshold
        often = "" if most == 1 else f" {most} times in a row"
        return (
            f"the {self.service} failed{often} and is left alone for now; {when} "
            f"(the last failure: {self._last})"
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


def breakers_of(deployment: Deployment) -> Breakers:
    """Three closed ones, as the environment's variables set them."""
    return Breakers.of(failures=deployment.breaker_failures, seconds=deployment.breaker_seconds)


async def guarded(
    breaker: Breaker | None, send: Callable[[], Awaitable[T]], *, failure: type[Exception]
) -> T:
    """What `send` gives, through `breaker` where there is one."""
    return await (send() if breaker is None else breaker.call(send, failure=failure))
