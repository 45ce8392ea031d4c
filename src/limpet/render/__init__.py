"""What a person sees: pure functions of results and events."""
