"""What the product costs and how well it recalls; run with `make bench`."""
