"""Scores: rules over trajectory, gold and variation; nothing here needs the runtime, so old runs are scored again."""
