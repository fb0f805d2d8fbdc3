"""How a tool call is carried out: python, http, MCP, builtin."""
