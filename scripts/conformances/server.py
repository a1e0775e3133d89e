"""The server that the suite tests: what `agentd mcp serve --http` serves, without its token."""

import shutil
import sys
from pathlib import Path

import uvicorn

from agentd.cli.context import Context, Opened
from agentd.cli.mcp_serve import make_home_server
from agentd.home import make_home


def main(folder: str, port: str) -> None:
    """Serve a new home in `folder`, with the suite's tools, until killed."""
    home = Path(folder) / "home"
    make_home(home)
    shutil.copy(Path(__file__).with_name("tools.py"), home / "tools" / "suite.py")

    async def work(opened: Opened) -> None:
        async with make_home_server(opened) as server:
            app = server.streamable_http_app()
            settings = uvicorn.Config(app, port=int(port), log_level="error")
            await uvicorn.Server(settings).serve()

    Context(explicit_home=home).run(work)


if __name__ == "__main__":
    main(*sys.argv[1:])
