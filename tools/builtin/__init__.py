"""The built-in tools, by concern."""

from tools.builtin import assistant, facts, notes, planning

__all__ = ["assistant", "facts", "notes", "planning"]
