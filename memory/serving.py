"""What only a server is told: how its users show who they are, and what each may take."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from memory.errors import InputError

LEAST_SECRET = 32
"""Bytes of a secret that signs tokens: as many as its hash has (RFC 7518, section 3.2)."""


class Serving(BaseSettings):
    """A server's `CIRCADIAN_` variables. Without secret and key, all it is asked is `local`'s."""

    model_config = SettingsConfigDict(
        env_prefix="CIRCADIAN_", extra="ignore", env_ignore_empty=True
    )

    token_secret: SecretStr | None = Field(
        None,
        min_length=LEAST_SECRET,
        description="Signs and checks users' tokens (HS256); `circadian token` makes them.",
    )
    token_key: Path | None = Field(
        None,
        description="A PEM file with the public key of who issues tokens (EdDSA, ES256, RS256).",
    )
    token_issuer: str | None = Field(None, description="The `iss` that a token must have.")
    token_audience: str | None = Field(None, description="The `aud` that a token must have.")
    requests_per_minute: int | None = Field(
        None, ge=1, description="Requests that a user may make a minute. None: no bound."
    )
    limits_storage: str = Field(
        "memory://",
        description="Where requests are counted; `redis://host:6379` for several replicas.",
    )
    memories_per_user: int | None = Field(
        None, ge=1, description="Records that are kept of one user, at most. None: no bound."
    )
    stop_seconds: float = Field(
        25.0,
        ge=0,
        le=3_600,
        description="Told to end, a server lets steps in hand go on so long before it breaks them "
        "off. Less than what its supervisor waits before it kills.",
    )

    @property
    def open(self) -> bool:
        """Whether nobody has to show who they are."""
        return self.token_secret is None and self.token_key is None


def serving_variables() -> Serving:
    """The variables as they stand. Raises InputError where one is not as it must be."""
    try:
        return Serving()
    except ValidationError as error:
        first = error.errors()[0]
        name = f"CIRCADIAN_{first['loc'][0]}".upper()
        raise InputError(f"{name}: {first['msg']}") from error
