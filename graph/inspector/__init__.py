"""The inspector: memory as pages in a browser, on loopback or on a server."""

from graph.inspector.app import inspector
from graph.inspector.local import OneAgent, local_inspector, serve

__all__ = ["OneAgent", "inspector", "local_inspector", "serve"]
