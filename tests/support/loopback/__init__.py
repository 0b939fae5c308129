"""The guard that lets tests, and every Python that a test starts, reach loopback only."""
