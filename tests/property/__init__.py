"""Tests of drawn sequences and inputs."""
