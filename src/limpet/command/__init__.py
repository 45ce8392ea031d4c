"""Understands a command line and runs nothing."""
