"""Circuit breakers: a service that keeps failing is left alone for a while (Nygard, Release It!).

Closed, calls pass. After a number of failures in a row the breaker opens and calls fail at once.
After some seconds it is half open: one call tries the service, and closes or reopens it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from circuitbreaker import CircuitBreaker

from memory.errors import CircadianError, CircuitOpen, ConfigurationError
from memory.settings import Deployment

T = TypeVar("T")

BreakerState = Literal["closed", "open", "half_open"]

log = logging.getLogger("circadian.breaker")


class Breaker:
    """The breaker of one service of one process, for one event loop."""

    def __init__(self, service: str, *, failures: int = 3, seconds: float = 30.0) -> None:
        self.service = service
        self.failures, self.seconds = failures, seconds
        self._circuit = CircuitBreaker(failures, seconds, name=service)
        self._trying = False
        """A call is trying the service; others fail until its outcome is known."""

    @property
    def state(self) -> BreakerState:
        """The state that the next call would find."""
        return cast(BreakerState, self._circuit.state)

    async def call(self, send: Callable[[], Awaitable[T]], *, failure: type[Exception]) -> T:
        """The result of `send`. Only errors of the type `failure` count against the service.

        Other errors of `memory.errors` show that it answers. A wrong configuration, a bug and a
        cancelled call change nothing. Raises CircuitOpen where no call was made.
        """
        trying = self._enter()
        try:
            result = await send()
        except failure as error:
            self._record(trying, error)
            raise
        except ConfigurationError:
            raise
        except CircadianError:
            self._record(trying)
            raise
        else:
            self._record(trying)
            return result
        finally:
            if trying:
                self._trying = False

    def _enter(self) -> bool:
        """Begin a call; returns whether this call tries the service again."""
        if self._trying:
            raise CircuitOpen(self._message("it is being tried again now"))
        if self._circuit.opened:
            left = max(1, self._circuit.open_remaining)
            raise CircuitOpen(self._message(f"it is tried again in {left} s"))
        self._trying = not self._circuit.closed
        return self._trying

    def _record(self, trying: bool, error: Exception | None = None) -> None:
        """Count how a call ended. Calls from before the breaker opened decide nothing."""
        if not trying and not self._circuit.closed:
            return
        if error is None:
            self._circuit.reset()
        else:
            # A copy: the error itself would keep its traceback, and with it prompts, in memory.
            self._circuit.__exit__(RuntimeError, RuntimeError(str(error)), None)
        fields = {"circadian": {"service": self.service, "state": self.state}}
        if self._circuit.opened:
            line = "the %s failed too often and is left alone for %g s"
            log.warning(line, self.service, self.seconds, extra=fields)
        elif trying:
            log.info("the %s answers again", self.service, extra=fields)

    def _message(self, when: str) -> str:
        often = "" if self.failures == 1 else f" {self.failures} times in a row"
        return (
            f"the {self.service} failed{often} and is left alone for now; {when} "
            f"(the last failure: {self._circuit.last_failure})"
        )


@dataclass(frozen=True)
class Breakers:
    """The breakers of one installation's services."""

    model: Breaker
    embedder: Breaker
    memory: Breaker

    @classmethod
    def of(cls, *, failures: int = 3, seconds: float = 30.0) -> Breakers:
        """Three closed breakers."""
        return cls(
            *(
                Breaker(service, failures=failures, seconds=seconds)
                for service in ("model", "embedder", "memory")
            )
        )


def breakers_of(deployment: Deployment) -> Breakers:
    """Three closed breakers, as the environment's variables set them."""
    return Breakers.of(failures=deployment.breaker_failures, seconds=deployment.breaker_seconds)


async def guarded(
    breaker: Breaker | None, send: Callable[[], Awaitable[T]], *, failure: type[Exception]
) -> T:
    """The result of `send`, called through `breaker` if there is one."""
    return await (send() if breaker is None else breaker.call(send, failure=failure))
