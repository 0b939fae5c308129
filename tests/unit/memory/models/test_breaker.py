"""Circuit breakers: what counts, when a service is left alone, how it is tried again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from memory.errors import (
    CircuitOpen,
    ConfigurationError,
    ContextOverflow,
    InputError,
    ModelError,
    ServiceDown,
)
from memory.models.retry import Breaker

Send = Callable[[], Awaitable[str]]


class Seconds:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()
    monkeypatch.setattr("circuitbreaker.monotonic", clock)
    return clock


def state_of(breaker: Breaker) -> str:
    """Read anew each time, which a type checker cannot know."""
    return breaker.state


async def well() -> str:
    return "well"


def raising(error: BaseException) -> Send:
    async def send() -> str:
        raise error

    return send


DOWN = raising(ServiceDown("HTTP 503: no"))


async def failing(breaker: Breaker, times: int, send: Send = DOWN) -> None:
    for _ in range(times):
        with pytest.raises(ServiceDown):
            await breaker.call(send, failure=ServiceDown)


async def opened(seconds: float = 30.0) -> Breaker:
    breaker = Breaker("model", failures=3, seconds=seconds)
    await failing(breaker, 3)
    return breaker


async def test_consecutive_failures_open_the_breaker(seconds: Seconds) -> None:
    breaker = Breaker("model", failures=3, seconds=30)
    await failing(breaker, 2)
    assert state_of(breaker) == "closed"
    await failing(breaker, 1)
    assert state_of(breaker) == "open"
    called: list[int] = []

    async def send() -> str:
        called.append(1)
        return "well"

    seconds.now += 10
    with pytest.raises(CircuitOpen) as raised:
        await breaker.call(send, failure=ServiceDown)
    assert called == []
    assert str(raised.value) == (
        "the model failed 3 times in a row and is left alone for now; it is tried again in 20 s "
        "(the last failure: HTTP 503: no)"
    )


ENDS: dict[str, BaseException] = {
    "fails": ServiceDown("HTTP 503: no"),
    "empty": ModelError("an empty answer"),
    "overflows": ContextOverflow("too long"),
    "refuses": InputError("no such"),
    "misconfigured": ConfigurationError("no key"),
    "bug": AttributeError("a bug"),
    "cancelled": asyncio.CancelledError(),
}
OPENED = "fails fails fails"
ANSWERED = ["well", "empty", "overflows", "refuses"]
NOTHING_KNOWN = ["misconfigured", "bug", "cancelled"]


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        *((f"fails fails {one} fails fails", "closed") for one in ANSWERED),
        *((f"{OPENED} 31 {one} fails fails", "closed") for one in ANSWERED),
        *((f"fails fails {one} fails", "open") for one in NOTHING_KNOWN),
        *((f"{OPENED} 31 {one}", "half_open") for one in NOTHING_KNOWN),
        *((f"{OPENED} 31 {one} well", "closed") for one in NOTHING_KNOWN),
        (f"{OPENED} 29", "open"),
        (f"{OPENED} 31", "half_open"),
        (f"{OPENED} 31 fails", "open"),
        (f"{OPENED} 31 fails 29", "open"),
        (f"{OPENED} 31 fails 31", "half_open"),
    ],
)
async def test_the_ends_of_calls_open_and_close_the_breaker(
    ends: str, state: str, seconds: Seconds
) -> None:
    """Each word is a call that ends in this way, each number so many seconds."""
    breaker = Breaker("model", failures=3)
    for one in ends.split():
        if one.isdecimal():
            seconds.now += int(one)
        elif one == "well":
            assert await breaker.call(well, failure=ServiceDown) == "well"
        else:
            with pytest.raises(type(ENDS[one])):
                await breaker.call(raising(ENDS[one]), failure=ServiceDown)
    assert state_of(breaker) == state


class Held:
    """A call that is under way until it is told how it ends."""

    def __init__(self, breaker: Breaker) -> None:
        self._end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(breaker.call(self._wait, failure=ServiceDown))

    async def _wait(self) -> str:
        return await self._end

    async def end(self, error: Exception | None = None) -> None:
        if error is None:
            self._end.set_result("well")
        else:
            self._end.set_exception(error)
        await asyncio.wait([self.task])

    async def cancel(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def begun(breaker: Breaker) -> Held:
    held = Held(breaker)
    await asyncio.sleep(0)
    return held


async def test_a_half_open_breaker_lets_one_call_through(seconds: Seconds) -> None:
    breaker = await opened()
    seconds.now += 31
    trial = await begun(breaker)
    with pytest.raises(CircuitOpen, match="is being tried again now"):
        await breaker.call(well, failure=ServiceDown)
    await trial.end()
    assert trial.task.result() == "well"
    assert state_of(breaker) == "closed"
    assert await breaker.call(well, failure=ServiceDown) == "well"


@pytest.mark.parametrize("late", [None, ServiceDown("late")])
async def test_calls_begun_before_the_opening_do_not_count(
    late: Exception | None, seconds: Seconds
) -> None:
    breaker = Breaker("model", failures=3)
    slow = [await begun(breaker), await begun(breaker)]
    await failing(breaker, 3)
    await slow[0].end(late)
    assert state_of(breaker) == "open"
    seconds.now += 31
    trial = await begun(breaker)
    await slow[1].end(late)
    with pytest.raises(CircuitOpen):
        await breaker.call(well, failure=ServiceDown)
    await trial.end()
    assert state_of(breaker) == "closed"
    for held in slow:
        assert held.task.exception() is late


async def test_concurrent_failures_count_each() -> None:
    breaker = Breaker("model", failures=3)
    held = [await begun(breaker) for _ in range(3)]
    for one in held:
        await one.end(ServiceDown("no"))
        assert one.task.exception() is not None
    assert state_of(breaker) == "open"


async def test_opening_and_closing_are_logged(
    seconds: Seconds, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="circadian.breaker")
    breaker = await opened()
    seconds.now += 31
    trial = await begun(breaker)
    await trial.cancel()
    await breaker.call(well, failure=ServiceDown)
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "the model failed too often and is left alone for 30 s"),
        ("INFO", "the model answers again"),
    ]
