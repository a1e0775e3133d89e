"""A patch of several files is all or nothing, wherever its process is killed.

The process counts its own steps that change the disk and kills itself with SIGKILL at each of them
in turn: before the receipt, between the files, in the middle of doing the rest after a first kill.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.processes import Home, new_home

_PATCH = """*** Begin Patch
*** Update File: one.txt
@@
-old one
+new one
*** Update File: two.txt
@@
-old two
+new two
*** Update File: three.txt
*** Move to: made/three.txt
@@
-old three
+new three
*** Delete File: four.txt
*** Add File: made/five.txt
+new five
*** End Patch"""
_BEFORE = {name: f"old {name}\n" for name in ("one", "two", "three", "four")}
_AFTER = {
    "one.txt": "new one\n",
    "two.txt": "new two\n",
    "made/three.txt": "new three\n",
    "made/five.txt": "new five\n",
}

# Every trial is a fork: the modules are loaded once.
_TRIALS = '''
import json, os, shutil, signal, sys
from pathlib import Path
from agentd.domain.run import CallKey
from agentd.sandbox.edits import Edits
from agentd.sandbox.workspace import Workspace
from agentd.tools.fs import apply_patch as module

base, patch, before = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
steps = 0
last = 0

def dying(name):
    original = getattr(os, name)
    def counted(*arguments, **named):
        global steps
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
        # A killed process loses nothing that it wrote: only a machine that fails needs fsync.
        return None if name == "fsync" else original(*arguments, **named)
    setattr(os, name, counted)

for name in ("rename", "unlink", "fsync", "mkdir", "rmdir"):
    dying(name)

def edits():
    return Edits(Workspace(base / "workspace"), base / "edits", CallKey("task/call"))

def child(work, die_at):
    """Whether it was killed."""
    pid = os.fork()
    if pid == 0:
        global steps, last
        steps, last = 0, die_at
        work()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status != 0

def files():
    found = (base / "workspace").rglob("*")
    return {str(p.relative_to(base / "workspace")): p.read_text() for p in found if p.is_file()}

def fresh():
    for name in ("workspace", "edits"):
        shutil.rmtree(base / name, ignore_errors=True)
    (base / "workspace").mkdir()
    for name, text in before.items():
        (base / "workspace" / f"{name}.txt").write_text(text)

def resume():
    if module._happened(edits(), patch) is None:
        states.append(files() == untouched)
        module.apply_patch(edits(), patch)
    else:
        states.append("finished")

states, ends = [], []
first = 0
while True:
    first += 1
    fresh()
    untouched = files()
    if not child(lambda: module.apply_patch(edits(), patch), first):
        break
    second = first % 3  # not every pair: it takes long
    while 0 < second < first and child(resume, second):
        second += 4
    resume()
    ends.append(files())
print(json.dumps({"kills": first - 1, "states": states, "ends": ends}))
'''


def test_a_patch_is_whole_wherever_its_process_is_killed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TRIALS, str(tmp_path), _PATCH, json.dumps(_BEFORE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] > 25
    assert [end for end in found["ends"] if end != _AFTER] == []
    # Before the receipt nothing had happened; after it, the rest was done.
    assert False not in found["states"]
    assert {True, "finished"} == set(found["states"])


_DIES_BETWEEN = """
import os, signal
from pathlib import Path
from agentd.sandbox import changes

move, moved = changes.move_over, []

def dying(place, beside):
    move(place, beside)
    moved.append(beside)
    marker = Path(os.environ["KILLED"])
    if len(moved) == 2 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)

changes.move_over = dying
"""


@pytest.mark.requirement("S2-15")
async def test_a_task_goes_on_after_a_kill_in_the_middle_of_its_patch(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text(
        f"[[turn]]\n[[turn.call]]\ntool = 'apply_patch'\ninput = {{ patch = '''{_PATCH}''' }}\n"
        "[[turn]]\n[[turn.call]]\ntool = 'complete_task'\n"
        'input = { summary = "${result.1}" }\n'
    )
    assert tomllib.loads(script.read_text())
    home = new_home(tmp_path, AGENT__MODEL=f"scripted:{script}")
    home = Home(home.path, {**home.variables, "KILLED": str(tmp_path / "killed")})
    (home.path / "tools" / "dies.py").write_text(_DIES_BETWEEN)
    for name, text in _BEFORE.items():
        (home.workspace / f"{name}.txt").write_text(text)
    task_id = await home.enqueue("Patch it.")
    assert (await home.run("run", "--drain")).code == -9
    half = [name for name in _AFTER if (home.workspace / name).exists()]
    assert "made/five.txt" not in half or "made/three.txt" not in half
    assert (await home.run("run", "--drain")).code == 0
    task = await home.task(task_id)
    assert task["state"] == "completed"
    assert task["output"].startswith("Applied the patch:\nupdated one.txt\n")
    found = {
        str(path.relative_to(home.workspace)): path.read_text()
        for path in home.workspace.rglob("*")
        if path.is_file()
    }
    assert found == _AFTER
