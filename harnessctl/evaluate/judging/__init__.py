"""Judging: panels of models that grade replies through a judge harness, and how far they agree with labels [B.4, C.1]."""
