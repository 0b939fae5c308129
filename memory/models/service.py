"""Whom a call goes to: the service's provider, model and address, and the variables that set them.

A wrong key, model name or address is told in one line that names the variable to change.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from memory.telemetry import named
from memory.text import safe

Kind = Literal["model", "embedder"]

Misfit = Literal["key", "name", "address", "page"]
"""What is set wrongly: the key, the model's name, the address; or the address is that of a site."""

_VARIABLES = {
    "openai": ("OPENAI_API_KEY", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "azure-openai": ("AZURE_OPENAI_API_KEY", ("AZURE_OPENAI_ENDPOINT",)),
    "anthropic": ("ANTHROPIC_API_KEY", ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL")),
}
_SETS_NAME: dict[Kind, str] = {
    "model": "CIRCADIAN_MODEL (or --model)",
    "embedder": "CIRCADIAN_EMBEDDER (or --embedder)",
}
_ADDRESSES = (
    *("openai_api_base", "azure_endpoint", "anthropic_api_url", "base_url", "endpoint_url"),
)
_ENDPOINT = re.compile(r"/(?:chat/completions|completions|embeddings|responses|v1/messages)/?\Z")


@dataclass(frozen=True)
class Service:
    """A chat model's or an embedder's service."""

    kind: Kind
    provider: str = ""
    name: str = ""
    address: str = ""
    """Of its client, if the client tells."""

    @classmethod
    def of(cls, client: Any, kind: Kind = "model") -> Service:
        """The service of a LangChain chat model or embeddings."""
        if kind == "model":
            provider, *rest = named(client)
        else:
            provider, *rest = _embedder(client)
        made = getattr(getattr(client, "root_client", None), "base_url", None)
        found = (*(getattr(client, key, None) for key in _ADDRESSES), made and str(made))
        address = next((one for one in found if isinstance(one, str) and one), "")
        return cls(kind, provider, (rest or [""])[0], address)

    def problem(self, misfit: Misfit, reason: str, url: str | None) -> str:
        """One line: what is wrong, what the service said, and which variable to set."""
        where, who = self._where(url), self._called()
        key, addresses = _VARIABLES.get(self.provider, ("", ()))
        key = key or "its provider's key"
        address = next((one for one in addresses if os.environ.get(one)), (*addresses, "")[0])
        address = address or "the address in its client"
        said = safe(reason)
        match misfit:
            case "key":
                return f"{where} refuses the key of {who} ({said}): set {key}"
            case "name":
                sets = f"{_SETS_NAME[self.kind]} names it, {address} the address"
                return f"{where} does not know {who} ({said}): {sets}"
            case "address":
                return f"{where}, the address of {who}, cannot be reached ({said}): set {address}"
            case "page":
                return f"{where} is no API for {who} ({said}): set {address}"

    def _called(self) -> str:
        return f"the {self.kind} {self.name}".strip()

    def _where(self, url: str | None) -> str:
        """The address without its endpoint, user and password."""
        parts = urlsplit(self.address or url or "")
        if not parts.hostname:
            return f"the service of the {self.kind}"
        port = f":{parts.port}" if parts.port else ""
        path = _ENDPOINT.sub("", parts.path).rstrip("/")
        return safe(f"{parts.scheme}://{parts.hostname}{port}{path}")


def _embedder(client: Any) -> list[str]:
    """[provider, name] of embeddings, whose classes have no `_llm_type`."""
    kind = type(client).__name__
    provider = {"OpenAIEmbeddings": "openai", "AzureOpenAIEmbeddings": "azure-openai"}.get(kind)
    return [provider or kind, str(getattr(client, "model", "") or "")]
