"""Augmentation: harness states varied within an envelope, with what must be preserved checked on each variant [3.2]."""
