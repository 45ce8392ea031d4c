"""How limpet compares with what it is built on: ratios, measured in one interleaved run."""
