"""A command's output: read once, kept within bounds, made into text."""
