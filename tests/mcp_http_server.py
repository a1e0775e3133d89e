"""An MCP server for tests, at /mcp over HTTP and at /sse as it was before.

python mcp_http_server.py PORT
"""

import sys

import uvicorn
from mcp.server import MCPServer

server = MCPServer("http", log_level="ERROR")


@server.tool()
def echo(text: str) -> str:
    """Give it back."""
    return text


if __name__ == "__main__":
    app = server.streamable_http_app()
    app.routes.extend(server.sse_app().routes)
    uvicorn.run(app, port=int(sys.argv[1]), log_level="error")
