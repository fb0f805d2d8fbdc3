"""Statistics of paired evaluations: what a difference of two systems is worth [C.4, 5.7, 5.8]."""
