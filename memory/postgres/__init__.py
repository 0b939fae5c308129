"""An installation in PostgreSQL, for several processes on several hosts."""
