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
page = read(Workspace(Path(sys.argv[1])), sys.argv[2], offset=int(sys.argv[3]))
assert page.more and page.first == int(sys.argv[3])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
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
    """Processes that do nothing else: what one takes is then what a page costs."""
    (root / "small.txt").write_bytes(_LINE * 2000)
    with (root / "large.txt").open("wb") as file:
        piece = _LINE * (1 << 14)
        for _ in range(_LARGE_BYTES // len(piece)):
            file.write(piece)
        lines = file.tell() // len(_LINE)
    _, small_kb = _page_of(root, "small.txt", 0)
    start_s, start_kb = _page_of(root, "large.txt", 0)
    end_s, end_kb = _page_of(root, "large.txt", lines - 10_000)
    with contextlib.suppress(FileNotFoundError):
        (root / "large.txt").unlink()
    most = max(start_kb, end_kb)
    return [
        Figure("a page at the end of 1 GB", end_s - start_s, "s"),
        Figure("… memory", most / small_kb, "×", "the same page of 100 KB", at_most=1.1),
    ]


def _page_of(root: Path, name: str, offset: int) -> tuple[float, int]:
    """Seconds, and the most KB that the process had in memory."""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _PAGE, str(root), name, str(offset)],
        check=True,
        capture_output=True,
        text=True,
    )
    return time.monotonic() - start, int(done.stdout)
