"""Import of other people's skills, hooks and MCP captures."""
