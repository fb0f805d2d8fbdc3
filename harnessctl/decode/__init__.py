"""Local decoding: a small model on this machine."""
