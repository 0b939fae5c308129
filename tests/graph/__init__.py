"""Tests of whole agents, awake and asleep, in the test's own process."""
