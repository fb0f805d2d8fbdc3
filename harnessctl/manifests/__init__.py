"""Manifests: where a project's sources are, and how they become typed specs."""
