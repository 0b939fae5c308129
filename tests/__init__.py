"""Tests. A test's name is the sentence that holds; none reaches a network but loopback."""
