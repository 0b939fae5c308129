"""Agents, models, servers and processes for tests."""
