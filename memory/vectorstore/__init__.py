"""The facts table and the indexes over it, as Mem0 uses them."""
