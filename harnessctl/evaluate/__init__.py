"""Evaluation: suites of scenarios through a policy, scored and reported [4]."""
