"""The sandbox tools of a harness as an MCP server, so that any agent can be tried on a world."""
