"""How tools are carried out: Python functions, HTTP, MCP servers and what is built in, behind one `ToolSet`."""
