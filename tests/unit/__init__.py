"""Tests of single packages, without an agent around them."""
