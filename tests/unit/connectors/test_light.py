"""Whoever uses no MCP server does not pay for the package."""

import subprocess
import sys
from pathlib import Path

_CODE = """
import sys
from pathlib import Path
import agentd.app
from agentd.config import load_config
from agentd.toolkit.discover import load_registry
registry, problems = load_registry(load_config(Path(sys.argv[1])))
assert not problems
registry.to_model_tools()
loaded = {"mcp", "mcp_types", "jsonschema", "referencing"} & set(sys.modules)
assert not loaded, loaded
"""


def test_the_tools_are_described_without_it(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _CODE, str(tmp_path)], check=True, timeout=15)
