"""The options that all commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memory.settings import Deployment


@dataclass(frozen=True)
class Options:
    """What every command is told."""

    data: Path | None
    """As given; `folder` says which one it is."""
    folder: Path
    agent: str
    model: str | None
    embedder: str | None
    offline: bool
    """CIRCADIAN_OFFLINE."""
    lock_timeout: float
    """Seconds to wait for another process's run."""
    json: bool

    @classmethod
    def of(
        cls,
        deployment: Deployment,
        *,
        data: Path | None = None,
        agent: str | None = None,
        model: str | None = None,
        embedder: str | None = None,
        json: bool = False,
    ) -> Options:
        """The options as given, else as the variables say."""
        return cls(
            data=data,
            folder=(data or deployment.data).expanduser(),
            agent=agent or deployment.agent,
            model=model or deployment.model,
            embedder=embedder or deployment.embedder,
            offline=deployment.offline,
            lock_timeout=deployment.lock_timeout,
            json=json,
        )
