"""Background tasks: the same pipeline, detached from the caller's life."""
