"""Compile: sources to bundle, as a list of passes."""
