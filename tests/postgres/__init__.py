"""Tests of what PostgreSQL alone does."""
