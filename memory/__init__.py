"""Nouns: what is kept - records, working state, settings, stores, scoring. Imports no other layer."""
