"""Processes: their environment, their start, their end."""
