"""Rules over parsed commands: what is refused, why, and the safer way."""
