"""An MCP server over HTTP that wants OAuth, with its own authorisation server; for tests.

python oauth_server.py LIFE_S: prints its port. POST /revoke makes every token worthless (?all: also
those that refresh), GET /counts tells how often each endpoint was asked.
"""

import contextlib
import json
import secrets
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import uvicorn
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

LIFE_S = int(sys.argv[1])
listening = socket.create_server(("127.0.0.1", 0))
BASE = f"http://127.0.0.1:{listening.getsockname()[1]}"
codes: set[str] = set()
tokens: set[str] = set()
refreshers: set[str] = set()
counts: Counter[str] = Counter()

server = MCPServer("guarded", log_level="ERROR")


@server.tool()
def whoami() -> str:
    """Tell who is logged in."""
    return "somebody"


async def resource(request: Request) -> Response:
    del request
    return JSONResponse({"resource": f"{BASE}/mcp", "authorization_servers": [BASE]})


async def metadata(request: Request) -> Response:
    del request
    return JSONResponse(
        {
            "issuer": BASE,
            "authorization_endpoint": f"{BASE}/sign-in",
            "token_endpoint": f"{BASE}/give",
            "registration_endpoint": f"{BASE}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
        }
    )


async def register(request: Request) -> Response:
    counts["register"] += 1
    asked = await request.json()
    given = {"client_id": "client-1", "token_endpoint_auth_method": "none"}
    return JSONResponse({**asked, **given}, status_code=201)


async def sign_in(request: Request) -> Response:
    codes.add(code := secrets.token_urlsafe())
    back = urlencode({"code": code, "state": request.query_params["state"]})
    return RedirectResponse(f"{request.query_params['redirect_uri']}?{back}", status_code=302)


async def give(request: Request) -> Response:
    form = await request.form()
    kind = str(form["grant_type"])
    counts[kind] += 1
    known, presented = (
        (codes, str(form.get("code")))
        if kind == "authorization_code"
        else (refreshers, str(form.get("refresh_token")))
    )
    if presented not in known:
        return JSONResponse({"error": "invalid_grant"}, status_code=400)
    known.discard(presented)
    tokens.add(token := secrets.token_urlsafe())
    refreshers.add(refresher := secrets.token_urlsafe())
    return JSONResponse(
        {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": LIFE_S,
            "refresh_token": refresher,
        }
    )


async def revoke(request: Request) -> Response:
    tokens.clear()
    if "all" in request.query_params:
        refreshers.clear()
    return Response()


async def tell(request: Request) -> Response:
    del request
    return JSONResponse(counts)


class Guarded:
    def __init__(self, app: Starlette) -> None:
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"").decode()
        if scope["type"] == "http" and given.removeprefix("Bearer ") not in tokens:
            where = f'Bearer resource_metadata="{BASE}/.well-known/oauth-protected-resource/mcp"'
            answer = Response(status_code=401, headers={"WWW-Authenticate": where})
            await answer(scope, receive, send)
            return
        await self.app(scope, receive, send)


inner = server.streamable_http_app()


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    del app
    async with server.session_manager.run():
        yield


app = Starlette(
    routes=[
        Route("/.well-known/oauth-protected-resource/mcp", resource),
        Route("/.well-known/oauth-authorization-server", metadata),
        Route("/register", register, methods=["POST"]),
        Route("/sign-in", sign_in),
        Route("/give", give, methods=["POST"]),
        Route("/revoke", revoke, methods=["POST"]),
        Route("/counts", tell),
        Mount("/", Guarded(inner)),
    ],
    lifespan=lifespan,
)
sys.stdout.write(json.dumps({"base": BASE}) + "\n")
sys.stdout.flush()
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
