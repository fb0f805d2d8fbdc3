"""Operators, one a file: each module has an `OPERATOR`, and is found without a list."""
