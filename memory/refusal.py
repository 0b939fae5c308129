"""Refusals: a change that the rules do not allow, phrased for the model that asked for it."""

from __future__ import annotations

from typing import Any

from memory.errors import CircadianError


class Refusal(CircadianError):
    """Nothing was changed. Says what is wrong and what to do next; a tool answers with it."""

    def __init__(self, error: str, suggestion: str, **details: Any) -> None:
        super().__init__(error)
        self.error = error
        self.suggestion = suggestion
        self.details = details

    def result(self) -> dict[str, Any]:
        """The result of the tool that was refused: success, error, suggestion, details."""
        return {
            "success": False,
            "error": self.error,
            "suggestion": self.suggestion,
            **self.details,
        }
