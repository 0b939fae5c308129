"""Tests of LangGraph's own server with the product in it."""
