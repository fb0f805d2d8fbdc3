"""Models that the runtime ships: any OpenAI-compatible endpoint, and a script."""
