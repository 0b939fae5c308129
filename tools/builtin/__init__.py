"""The built-in tools, by concern."""

from tools.builtin import assistant, communication, facts, notes, planning

__all__ = ["assistant", "communication", "facts", "notes", "planning"]
