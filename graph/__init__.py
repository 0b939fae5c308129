"""Wiring: awake, sleep, agent, persistence, command line. Imports nodes, tools and memory."""
