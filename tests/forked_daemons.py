"""Daemons that come and go quickly: each is a process of its own, forked from one that has loaded
what they need. For tests that kill several, one after another.
"""

import json
import sys

import anyio

from tests.processes import Home

# Nothing in it may begin a thread before the fork.
_CODE = """
import json, os, pkgutil, sys
from importlib import import_module
import agentd.app, agentd.cli.run, agentd.models.scripted, agentd.tools
from agentd.cli.main import main

for module in pkgutil.walk_packages(agentd.tools.__path__, "agentd.tools."):
    if not module.ispkg:
        import_module(module.name)
assert len(os.listdir("/proc/self/task")) == 1
ends = []
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        os.dup2(2, 1)
        main(["run", "--drain"])
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(ends))
"""


async def drained(home: Home, times: int) -> list[int]:
    """How `agentd run --drain` ended each time; a signal is a negative number."""
    command = [sys.executable, "-c", _CODE, str(times)]
    with anyio.fail_after(60):
        done = await anyio.run_process(command, env=home.environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    ends: list[int] = json.loads(done.stdout)
    return ends
