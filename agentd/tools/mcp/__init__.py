"""Tools of MCP servers: found, described and called."""
