"""What must not change while the code is rebuilt: every name and document that others rely on.

Renew what is kept after a change that is wanted: `RENEW_FROZEN=1 python -m pytest tests/frozen`.
"""
