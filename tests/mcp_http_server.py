"""An MCP server over HTTP for tests: python mcp_http_server.py PORT streamable-http|sse."""

import sys

from mcp.server import MCPServer

server = MCPServer("http", log_level="ERROR")


@server.tool()
def echo(text: str) -> str:
    """Give it back."""
    return text


if __name__ == "__main__":
    server.run(sys.argv[2], port=int(sys.argv[1]))
