"""Nouns: what is kept - records, state, settings, stores, models. Imports no other layer."""
