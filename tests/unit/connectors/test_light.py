"""Whoever uses no MCP server does not pay for the package."""

import subprocess
import sys

_CODE = """
import sys
import agentd.app
from agentd.toolkit.discover import load_registry
registry, problems = load_registry(None)
assert not problems
registry.to_model_tools()
loaded = {"mcp", "mcp_types", "jsonschema", "referencing"} & set(sys.modules)
assert not loaded, loaded
"""


def test_the_tools_are_described_without_it() -> None:
    subprocess.run([sys.executable, "-c", _CODE], check=True, timeout=15)
