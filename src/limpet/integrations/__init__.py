"""limpet where agents already live: one small file for each framework, over the profiles."""
