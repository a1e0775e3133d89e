"""grep and glob over many files beside plain ripgrep, and a page of a large file."""

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from agentd.sandbox.commands import Commands
from agentd.sandbox.roots import Root
from agentd.sandbox.workspace import Workspace
from agentd.tools.fs.glob import glob
from agentd.tools.fs.grep import grep
from agentd.tools.fs.ripgrep import rg_path
from scripts.benches.figures import Figure

_FILES = 20_000
_IN_A_FOLDER = 100
_TIMES = 9
_LARGE_BYTES = 1 << 30
_LINE = b"a line of the log, as long as such lines are, more or less\n"

_PAGE = """
import resource, sys
from pathlib import Path
from agentd.sandbox.workspace import Workspace
from agentd.tools.fs.read import read
workspace = Workspace(Path(sys.argv[1]))
read(workspace, "small.txt")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
page = read(workspace, "large.txt", offset=int(sys.argv[2]))
assert page.more and page.first == int(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        root = Path(folder)
        return [*_searches(root), *_page(root)]


def _searches(root: Path) -> list[Figure]:
    tree = root / "tree"
    for number in range(_FILES):
        path = tree / f"{number // _IN_A_FOLDER:03}" / f"{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        rare = "needle here\n" if number % 500 == 0 else ""
        path.write_text(f"import os\n\ndef f{number}():\n    return {number}\n{rare}" * 5)
    workspace, commands = Workspace(tree), Commands([Root(tree)])
    rg = str(rg_path())
    grepped = _beside(
        [rg, "--no-config", "--line-number", "needle"],
        tree,
        lambda: asyncio.run(grep(workspace, commands, "needle")).files,
    )
    listed = _beside(
        [rg, "--no-config", "--files", "--glob", "**/*7.py"],
        tree,
        lambda: len(asyncio.run(glob(workspace, commands, "**/*7.py")).paths),
    )
    return [
        Figure("rg over 20,000 files", grepped[0] * 1000, "ms"),
        Figure("grep over 20,000 files", grepped[1] * 1000, "ms"),
        Figure("… as a ratio", grepped[1] / grepped[0], "×", at_most=2),
        Figure("rg --files over 20,000 files", listed[0] * 1000, "ms"),
        Figure("glob over 20,000 files", listed[1] * 1000, "ms"),
        Figure("… as a ratio", listed[1] / listed[0], "×", at_most=2),
    ]


def _beside(command: list[str], folder: Path, ours: Callable[[], int]) -> tuple[float, float]:
    """Seconds that each takes, one after the other in turns."""
    theirs_s: list[float] = []
    ours_s: list[float] = []
    for _ in range(_TIMES):
        start = time.monotonic()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        theirs_s.append(time.monotonic() - start)
        start = time.monotonic()
        assert ours() > 0
        ours_s.append(time.monotonic() - start)
    return median(theirs_s[1:]), median(ours_s[1:])


def _page(root: Path) -> list[Figure]:
    (root / "small.txt").write_text("one line\n")
    with (root / "large.txt").open("wb") as file:
        piece = _LINE * (1 << 14)
        for _ in range(_LARGE_BYTES // len(piece)):
            file.write(piece)
        lines = file.tell() // len(_LINE)
    seconds: list[float] = []
    grown_kb = 0
    for offset in (0, lines // 2, lines - 10_000):
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", _PAGE, str(root), str(offset)],
            check=True,
            capture_output=True,
            text=True,
        )
        seconds.append(time.monotonic() - start)
        grown_kb = max(grown_kb, int(done.stdout))
    with contextlib.suppress(FileNotFoundError):
        (root / "large.txt").unlink()
    return [
        Figure("a page at the end of 1 GB", seconds[-1] - seconds[0], "s"),
        Figure("… memory it takes", grown_kb / 1024, "MB", at_most=16),
    ]
