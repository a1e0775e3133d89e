"""glob: patterns (glob_patterns.py), what is left out, and the order."""

import time
from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.sandbox.commands import Commands
from agentd.sandbox.roots import Root
from agentd.sandbox.workspace import Workspace
from agentd.tools.fs.glob import glob
from agentd.tools.fs.glob_patterns import glob_regex, name_glob


@pytest.fixture
def commands(folder: Path) -> Commands:
    return Commands([Root(folder)])


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")


@pytest.mark.requirement("S2-18")
@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("**/*.go", ".", ["a.go", "src/b.go", "src/deep/c.go"]),
        ("*.go", ".", ["a.go", "src/b.go", "src/deep/c.go"]),
        ("src/*.go", ".", ["src/b.go"]),
        ("*.go", "src", ["src/b.go", "src/deep/c.go"]),
        ("deep/*", "src", ["src/deep/c.go", "src/deep/d.txt"]),
        ("src/**", ".", ["src/b.go", "src/deep/c.go", "src/deep/d.txt"]),
        ("**/*.{txt,md}", ".", ["src/deep/d.txt"]),
        ("nothing*", ".", []),
    ],
)
async def test_paths_that_match(
    pattern: str, path: str, found: list[str], folder: Path, commands: Commands
) -> None:
    fill(folder, "a.go", "src/b.go", "src/deep/c.go", "src/deep/d.txt")
    made = await glob(Workspace(folder), commands, pattern, path)
    assert made.paths == found
    assert (made.more, made.complete) == (0, True)
    expected = "\n".join(found) or f"No file matches {pattern} in the workspace."
    assert made.content.startswith(expected)


@pytest.mark.requirement("S2-18")
async def test_hidden_and_ignored_files_are_left_out_unless_named(
    folder: Path, commands: Commands
) -> None:
    fill(folder, "a.py", ".hidden/b.py", "node_modules/c.py", "d.log")
    (folder / ".gitignore").write_text("node_modules/\n*.log\n")
    workspace = Workspace(folder)
    assert (await glob(workspace, commands, "**/*")).paths == ["a.py"]
    assert (await glob(workspace, commands, "*.py", ".hidden")).paths == [".hidden/b.py"]
    assert (await glob(workspace, commands, "*.py", "node_modules")).paths == ["node_modules/c.py"]


async def test_a_thousand_paths_and_how_many_more(folder: Path, commands: Commands) -> None:
    fill(folder, *(f"{number:04}.txt" for number in range(1003)))
    made = await glob(Workspace(folder), commands, "*.txt")
    assert (len(made.paths), made.more, made.paths[-1]) == (1000, 3, "0999.txt")
    assert "[3 more paths are not shown" in made.content


async def test_another_root_is_searched_by_its_absolute_path(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data, "sub/x.csv")
    roots = [Root(data, writable=False)]
    commands = Commands([Root(folder), *roots])
    made = await glob(Workspace(folder, roots), commands, "sub/*.csv", str(data))
    assert made.paths == [str(data / "sub/x.csv")]


@pytest.mark.parametrize("path", ["../", "/etc", "nowhere", "up"])
async def test_only_folders_of_the_workspace_are_searched(
    path: str, folder: Path, commands: Commands
) -> None:
    (folder / "up").symlink_to("..")
    with pytest.raises(ToolError) as caught:
        await glob(Workspace(folder), commands, "*", path)
    assert caught.value.error_type in ("outside_workspace", "not_found")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[!a-c]x", "dx", True),
        ("a[+-9]b", "a/b", False),
        (r"\*", "*", True),
        (r"\*", "x", False),
        ("**/a/**/b", "a/b", True),
        ("**/a/**/b", "x/a/y/z/b", True),
        ("**/a/**/b", "x/a/y/z/c", False),
        ("a/**/b/*.c", "a/x/b/y/b/z.c", True),
        ("a/**", "a", False),
        ("./src/*", "src/x", True),
        ("src/", "src", True),
        ("{a,b/{c,d}}.x", "b/d.x", True),
        ("*a*b*c", "xxaxxbxxcxxc", True),
        ("*.tar.gz", "x/y.tar.gz", True),
        ("a+b", "a+b", True),
        ("**", "any/where", True),
    ],
)
def test_what_a_pattern_means(pattern: str, path: str, matches: bool) -> None:
    assert bool(glob_regex(pattern).match(path)) is matches


@pytest.mark.parametrize("pattern", ["/abs/*", "../*", "a/../b", "[z-a]", "{a,b}" * 10, "a" * 2000])
def test_a_pattern_that_makes_no_sense_is_refused(pattern: str) -> None:
    with pytest.raises(ToolError) as caught:
        glob_regex(pattern)
    assert caught.value.error_type == "invalid_pattern"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 40 + "*b", "a" * 250),
        ("**/*a" * 40 + "/b", "/".join(["a" * 20] * 150)),
        ("**/" * 100 + "b", "/".join(["a"] * 1000)),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    regex = glob_regex(pattern)
    before = time.process_time()
    assert regex.match(path) is None
    assert time.process_time() - before < 0.5


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("**/*.go", "*.go"),
        ("src/**/*.{ts,tsx}", "*.{ts,tsx}"),
        ("**/*", None),
        ("src/**", None),
        ("{a/b,c}", None),
        ("[ab].c", None),
    ],
)
def test_what_ripgrep_may_leave_out_beforehand(pattern: str, name: str | None) -> None:
    assert name_glob(pattern) == name
