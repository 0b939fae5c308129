"""Processes killed at every point, full disks, databases that are down."""
