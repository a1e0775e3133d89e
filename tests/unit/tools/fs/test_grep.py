"""grep: what is found, in which order, and what is said of the rest."""

import os
from pathlib import Path

import pytest

from agentd.app_tools import make_commands
from agentd.config import load_config
from agentd.domain.errors import ToolError
from agentd.home import make_home
from agentd.sandbox.commands import Commands
from agentd.sandbox.roots import Root
from agentd.sandbox.workspace import Workspace
from agentd.tools.fs.grep import Match, Matches, grep


@pytest.fixture
def commands(folder: Path) -> Commands:
    return Commands([Root(folder)])


@pytest.fixture
def tree(folder: Path) -> Path:
    files = {
        "b.py": "import os\nneedle = 1\n",
        "a/x.go": "package x\n// Needle\nneedle()\nend\n",
        ".hidden/c.py": "needle\n",
        "node_modules/d.js": "needle\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "data.bin").write_bytes(b"needle\n\0\0")
    (folder / ".gitignore").write_text("node_modules/\n")
    return folder


async def found(folder: Path, commands: Commands, pattern: str, **more: object) -> Matches:
    return await grep(Workspace(folder), commands, pattern, **more)  # pyright: ignore[reportArgumentType]


@pytest.mark.requirement("S2-17")
async def test_path_number_and_line_by_path(tree: Path, commands: Commands) -> None:
    made = await found(tree, commands, "needle")
    assert made.content == "a/x.go:2:needle()\nb.py:1:needle = 1"
    assert made.matches == [Match("a/x.go", 2, "needle()"), Match("b.py", 1, "needle = 1")]
    assert (made.files, made.more, made.complete) == (2, 0, True)


@pytest.mark.requirement("S2-17")
@pytest.mark.parametrize(
    ("include", "content"),
    [
        ("*.go", "a/x.go:2:needle()"),
        ("**/*.{py,js}", "b.py:1:needle = 1"),
        ("a/*", "a/x.go:2:needle()"),
        ("*.md", "No line matches in the workspace."),
    ],
)
async def test_only_files_that_are_included(
    include: str, content: str, tree: Path, commands: Commands
) -> None:
    assert (await found(tree, commands, "needle", include=include)).content.startswith(content)


async def test_hidden_ignored_and_single_files_are_searched_when_named(
    tree: Path, commands: Commands
) -> None:
    for path, line in [
        (".hidden", ".hidden/c.py:0:needle"),
        ("node_modules", "node_modules/d.js:0:needle"),
        ("./b.py", "b.py:1:needle = 1"),
        (str(tree / "a"), "a/x.go:2:needle()"),
    ]:
        assert (await found(tree, commands, "needle", path=path)).content == line


async def test_case_and_context(tree: Path, commands: Commands) -> None:
    made = await found(tree, commands, "needle", ignore_case=True, path="a", context_lines=1)
    assert made.content == (
        "a/x.go-0-package x\na/x.go:1:// Needle\na/x.go:2:needle()\na/x.go-3-end"
    )
    assert [match.line for match in made.matches] == [1, 2]
    (tree / "b.py").write_text("needle\n1\n2\n3\nneedle\n")
    made = await found(tree, commands, "needle", path="b.py", context_lines=1)
    assert made.content.split("\n")[1:4] == ["b.py-1-1", "--", "b.py-3-3"]


async def test_what_is_not_shown_is_counted(tree: Path, commands: Commands) -> None:
    for number in range(30):
        (tree / f"many{number:02}.txt").write_text("needle\n" * 10)
    made = await found(tree, commands, "^needle$", max_results=15)
    assert [match.path for match in made.matches] == ["many00.txt"] * 10 + ["many01.txt"] * 5
    assert (made.more, made.files) == (285, 30)
    assert "[285 of 300 matching lines in 30 files are not shown" in made.content
    assert (await found(tree, commands, "^needle$", max_results=15)).content == made.content


async def test_long_lines_are_cut(tree: Path, commands: Commands) -> None:
    (tree / "long.txt").write_text("x" * 100_000 + "needle\n")
    made = await found(tree, commands, "needle", path="long.txt")
    assert len(made.content) < 700
    assert "omitted" in made.content


@pytest.mark.parametrize("pattern", ["(unclosed", "*", "[a", "(?=x)", r"\p{Nope}"])
async def test_a_pattern_that_is_none_says_why(
    pattern: str, tree: Path, commands: Commands
) -> None:
    with pytest.raises(ToolError) as caught:
        await found(tree, commands, pattern)
    assert caught.value.error_type == "invalid_pattern"
    assert "regex parse error" in caught.value.message


@pytest.mark.parametrize("pattern", ["--files", "-e", "--pre=/bin/sh", "-f/etc/passwd"])
async def test_a_pattern_is_never_an_option(pattern: str, tree: Path, commands: Commands) -> None:
    (tree / "options.txt").write_text(f"a {pattern} b\n")
    made = await found(tree, commands, pattern)
    assert made.content == f"options.txt:0:a {pattern} b"


async def test_names_that_look_like_options_or_other_results(
    folder: Path, commands: Commands
) -> None:
    for name in ("--pre", "-f", "a:1:b", "a b", "é\udcff"):
        (folder / os.fsencode(name).decode("utf-8", "surrogateescape")).write_text("needle\n")
    made = await found(folder, commands, "needle", path="--pre")
    assert made.matches == [Match("--pre", 0, "needle")]
    made = await found(folder, commands, "needle")
    names = ["--pre", "-f", "a b", "a:1:b", "é\ufffd"]
    assert [match.path for match in made.matches] == names


async def test_links_lead_nowhere_and_settings_of_ripgrep_do_not_count(
    tree: Path, tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("needle secret\n")
    (tree / "link").symlink_to(tmp_path / "outside")
    (tree / "ripgreprc").write_text("--follow\n--hidden\n--no-ignore\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tree / "ripgreprc"))
    made = await found(tree, commands, "needle")
    assert [match.path for match in made.matches] == ["a/x.go", "b.py"]
    with pytest.raises(ToolError, match="outside the workspace"):
        await found(tree, commands, "needle", path="link")


async def test_a_file_that_can_not_be_read_hides_no_other(tree: Path, commands: Commands) -> None:
    (tree / "closed.py").write_text("needle\n")
    (tree / "closed.py").chmod(0)
    os.mkfifo(tree / "pipe")
    made = await found(tree, commands, "needle")
    assert {match.path for match in made.matches} >= {"a/x.go", "b.py"}


async def test_it_searches_where_nothing_can_be_confined_unless_that_would_show_a_home(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentd.sandbox.commands.bwrap_program", lambda: None)
    make_home(tree / "home")
    made = await found(tree, Commands([Root(tree)]), "needle")
    assert [match.path for match in made.matches] == ["a/x.go", "b.py"]
    around = load_config(tree / "home", {"workspace.path": str(tree)})
    with pytest.raises(ToolError, match="can not be confined here"):
        await found(tree, make_commands(around), "needle")
