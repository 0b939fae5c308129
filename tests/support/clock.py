"""A clock that tests set."""

from datetime import UTC, datetime, timedelta


class Clock:
    """Stands still at `now` (UTC) until it is set or moved. Called, it tells the time."""

    def __init__(self, now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def set(self, now: datetime) -> None:
        if now.tzinfo is None:
            raise ValueError("a time of the clock needs a zone")
        self.now = now.astimezone(UTC)

    def advance(self, **delta: float) -> datetime:
        """Move on by a timedelta's arguments (`hours=1`), and return the new time."""
        self.now += timedelta(**delta)
        return self.now
