"""Benchmarks: what the product costs and how well it recalls. Run them with `make bench`."""
