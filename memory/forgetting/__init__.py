"""Forgetting a person: what of a memory is theirs or made from it, and what is left without."""
