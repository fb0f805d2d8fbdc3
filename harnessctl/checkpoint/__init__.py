"""Checkpoint: model folders with a lineage, and the points from which a broken-off training goes on."""
