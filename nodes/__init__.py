"""Verbs: one step each, state in, partial state out. Imports tools and memory."""
