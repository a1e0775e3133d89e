"""A repository can make git run programs. Here none of them gets out of the sandbox.

Each trick is first shown to work on a plain git, so that a test can not pass for the wrong reason.
The canary writes to a folder outside the workspace, where only an unconfined process can write.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentd.domain.errors import ToolError
from agentd.domain.run import CallKey
from agentd.sandbox.commands import Commands
from agentd.sandbox.egress import Egress, Rules
from agentd.sandbox.git.git import Git, GitSettings
from agentd.sandbox.roots import Root
from agentd.sandbox.ssh import SshAccess
from agentd.tools.vcs.github import github
from tests.sshd import Sshd, running_sshd

SECRET = "canary-7f3a"
HOOKS = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-receive",
    "prepare-commit-msg",
    "push-to-checkout",
    "reference-transaction",
    "update",
    "proc-receive",
]


@dataclass(frozen=True)
class Scene:
    """`repo`: the hostile repository. `outside`: what only an unconfined process reaches."""

    repo: Path
    outside: Path
    script: Path

    @property
    def fired(self) -> bool:
        return (self.outside / "fired").exists()

    @property
    def ran_inside(self) -> bool:
        return (self.repo / "ran-inside").exists()

    def plain(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=P", "-c", "user.email=p@e", *arguments],
            cwd=self.repo,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
            env={"PATH": os.environ["PATH"], "HOME": str(self.outside)},
        )
        return done.stdout + done.stderr

    def config(self, key: str, value: str) -> None:
        self.plain("config", "--add", key, value)

    def program(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.script, path)
        path.chmod(0o755)


def hooks(scene: Scene) -> None:
    for name in HOOKS:
        scene.program(scene.repo / ".git/hooks" / name)
    scene.plain("commit", "--allow-empty", "-m", "x")


def hooks_elsewhere(scene: Scene) -> None:
    scene.program(scene.repo / "evil/pre-commit")
    scene.config("core.hooksPath", "evil")
    scene.plain("commit", "--allow-empty", "-m", "x")


def fsmonitor(scene: Scene) -> None:
    scene.config("core.fsmonitor", str(scene.script))
    scene.plain("status")


def included(scene: Scene) -> None:
    (scene.repo / "more.cfg").write_text(f"[core]\n\tfsmonitor = {scene.script}\n")
    scene.config("include.path", "../more.cfg")
    scene.plain("status")


def included_on_a_branch(scene: Scene) -> None:
    (scene.repo / "more.cfg").write_text(f"[core]\n\tfsmonitor = {scene.script}\n")
    scene.config("includeIf.onbranch:main.path", "../more.cfg")
    scene.plain("status")


def editor(scene: Scene) -> None:
    scene.config("core.editor", str(scene.script))
    scene.plain("commit", "--allow-empty")


def signing(scene: Scene) -> None:
    scene.config("gpg.program", str(scene.script))
    scene.config("commit.gpgSign", "true")
    scene.config("log.showSignature", "true")
    scene.plain("commit", "--allow-empty", "-m", "x")


def external_diff(scene: Scene) -> None:
    scene.config("diff.external", str(scene.script))
    (scene.repo / "a.txt").write_text("changed\n")
    scene.plain("diff")


def textconv(scene: Scene) -> None:
    scene.config("diff.evil.textconv", str(scene.script))
    (scene.repo / ".gitattributes").write_text("* diff=evil\n")
    (scene.repo / "a.txt").write_text("changed\n")
    scene.plain("diff")


def clean_filter(scene: Scene) -> None:
    scene.config("filter.evil.clean", f"{scene.script} filter")
    (scene.repo / ".git/info/attributes").write_text("* filter=evil\n")
    (scene.repo / "new.txt").write_text("new\n")
    scene.plain("add", "new.txt")
    scene.plain("reset")


def process_filter(scene: Scene) -> None:
    scene.config("filter.evil.process", str(scene.script))
    scene.config("filter.evil.required", "true")
    (scene.repo / ".git/info/attributes").write_text("* filter=evil\n")
    (scene.repo / "new.txt").write_text("new\n")
    scene.plain("add", "new.txt")
    scene.plain("reset")


def inside_a_submodule(scene: Scene) -> None:
    sub = scene.repo / "sub"
    scene.plain("init", "-q", str(sub))
    scene.plain("-C", str(sub), "commit", "--allow-empty", "-m", "x")
    scene.plain("add", "sub")
    scene.plain("-C", str(sub), "config", "core.fsmonitor", str(scene.script))
    scene.plain("status")


def bare_at_the_root(scene: Scene) -> None:
    for name in ("HEAD", "objects", "refs", "config", "index"):
        (scene.repo / ".git" / name).rename(scene.repo / name)
    shutil.rmtree(scene.repo / ".git")
    settings = ("repositoryformatversion = 0", "bare = false", "worktree = .")
    lines = ["[core]", *settings, f"fsmonitor = {scene.script}", ""]
    (scene.repo / "config").write_text("\n".join(lines))
    scene.plain("status")


def ssh_command(scene: Scene) -> None:
    scene.config("core.sshCommand", str(scene.script))
    scene.plain("ls-remote", "origin")


def instead_of(scene: Scene) -> None:
    scene.config("protocol.ext.allow", "always")
    scene.config(f"url.ext::{scene.script} .insteadOf", "ssh://")
    scene.plain("ls-remote", "origin")


def upload_pack(scene: Scene) -> None:
    scene.config("remote.origin.uploadpack", str(scene.script))
    scene.config("remote.origin.receivepack", str(scene.script))
    scene.config(f"url.{scene.repo}.insteadOf", scene.plain("remote", "get-url", "origin").strip())
    scene.plain("fetch", "origin")


def credentials(scene: Scene) -> None:
    scene.config("credential.helper", f"!{scene.script}")
    scene.config("core.askPass", str(scene.script))
    scene.plain("credential", "fill", stdin="protocol=https\nhost=example.org\n\n")


LOCAL: list[Callable[[Scene], None]] = [
    hooks,
    hooks_elsewhere,
    fsmonitor,
    included,
    included_on_a_branch,
    editor,
    signing,
    external_diff,
    textconv,
    clean_filter,
    process_filter,
    inside_a_submodule,
    bare_at_the_root,
]
REMOTE = [hooks, fsmonitor, ssh_command, instead_of, upload_pack, credentials]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("ssh") / "d") as started:
        yield started


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    repo, outside = tmp_path / "workspace", tmp_path / "outside"
    repo.mkdir()
    outside.mkdir()
    script = repo / "canary"
    script.write_text(
        f"#!/bin/sh\ntouch {outside}/fired\ntouch {repo}/ran-inside\nenv > {repo}/env.txt\n"
        f"for each in {tmp_path}/mirrors/*; do touch $each/fired; done\n"
        'test "$1" = filter && exec cat\nexit 0\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    made = Scene(repo, outside, script)
    made.plain("init", "-q", "-b", "main")
    (repo / "a.txt").write_text("one\n")
    made.plain("add", "a.txt")
    made.plain("commit", "-q", "-m", "first")
    return made


def reset(scene: Scene) -> None:
    """The trick has been shown to work; what it left behind goes."""
    assert scene.fired, "the trick does not work on a plain git: this test shows nothing"
    (scene.outside / "fired").unlink()
    (scene.repo / "ran-inside").unlink()
    (scene.repo / "env.txt").unlink()


def git_of(scene: Scene, access: SshAccess, *private: str) -> Git:
    settings = GitSettings("agentd", "a@localhost", access, scene.outside.parent / "mirrors")
    return Git(scene.repo, Commands([Root(scene.repo)]), Egress(Rules(private=private)), settings)


async def all_of(git: Git, *actions: str) -> list[str]:
    """What each said; that a hostile repository does not work is no fault."""
    said: list[str] = []
    for action in actions:
        try:
            done = await github(git, CallKey(action), action, message="x")  # pyright: ignore[reportArgumentType]
            said.append(done.content)
        except ToolError as error:
            said.append(error.message)
    return said


@pytest.mark.parametrize("trick", LOCAL, ids=lambda trick: trick.__name__)
async def test_looking_and_committing_run_nothing_outside(
    trick: Callable[[Scene], None], scene: Scene
) -> None:
    trick(scene)
    reset(scene)
    (scene.repo / "work.txt").write_text("work\n")
    git = git_of(scene, SshAccess(None, []))
    await all_of(git, "status", "log", "commit", "status")
    assert not scene.fired
    # Filters belong to what git adds, and run in the sandbox; all else does not run at all.
    filters = trick in (clean_filter, process_filter)
    assert scene.ran_inside == filters
    if filters:
        assert SECRET not in (scene.repo / "env.txt").read_text()
    elif trick is not bare_at_the_root:
        assert "Agentd-Call" in scene.plain("-c", "core.fsmonitor=false", "log", "-1")


@pytest.mark.parametrize("trick", REMOTE, ids=lambda trick: trick.__name__)
async def test_pulling_and_pushing_run_nothing_outside(
    trick: Callable[[Scene], None], scene: Scene, sshd: Sshd, tmp_path: Path
) -> None:
    remote = tmp_path / "remote.git"
    scene.plain("init", "-q", "--bare", "-b", "main", str(remote))
    scene.plain("push", "-q", str(remote), "main")
    scene.plain("remote", "add", "origin", sshd.address(remote))
    trick(scene)
    reset(scene)
    git = git_of(scene, SshAccess(sshd.key, [sshd.known_hosts]), f"127.0.0.1:{sshd.port}")
    said = await all_of(git, "pull", "commit", "push")
    assert said[2].startswith("Pushed main"), said  # the tricks hindered nothing, either
    assert not scene.fired
    assert not scene.ran_inside
    assert not list((tmp_path / "mirrors").rglob("fired"))


async def test_what_a_pull_checks_out_runs_inside(scene: Scene, sshd: Sshd, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    scene.plain("clone", "-q", "--bare", str(scene.repo), str(remote))
    other = tmp_path / "other"
    scene.plain("clone", "-q", str(remote), str(other))
    (other / "b.txt").write_text("b\n")
    for words in (["add", "-A"], ["commit", "-m", "b"], ["push", "-q"]):
        scene.plain("-C", str(other), *words)
    scene.plain("remote", "add", "origin", sshd.address(remote))
    scene.config("filter.evil.smudge", f"{scene.script} filter")
    (scene.repo / ".git/info/attributes").write_text("* filter=evil\n")
    (scene.repo / "a.txt").unlink()
    scene.plain("checkout", "a.txt")
    reset(scene)
    git = git_of(scene, SshAccess(sshd.key, [sshd.known_hosts]), f"127.0.0.1:{sshd.port}")
    assert (await all_of(git, "pull"))[0].startswith("Pulled main")
    assert scene.ran_inside
    assert not scene.fired
    assert SECRET not in (scene.repo / "env.txt").read_text()
    assert not list((tmp_path / "mirrors").rglob("fired"))


def elsewhere(scene: Scene) -> Path:
    """Another repository, outside the workspace, with a secret in its files and its log."""
    path = scene.outside / "private"
    scene.plain("init", "-q", "-b", "main", str(path))
    (path / "secret.txt").write_text(SECRET)
    scene.plain("-C", str(path), "add", "-A")
    scene.plain("-C", str(path), "commit", "-q", "-m", SECRET)
    return path


def git_file(scene: Scene) -> None:
    shutil.rmtree(scene.repo / ".git")
    (scene.repo / ".git").write_text(f"gitdir: {elsewhere(scene)}/.git\n")
    assert SECRET in scene.plain("log")


def git_link(scene: Scene) -> None:
    shutil.rmtree(scene.repo / ".git")
    (scene.repo / ".git").symlink_to(elsewhere(scene) / ".git")
    assert SECRET in scene.plain("log")


def common_dir(scene: Scene) -> None:
    (scene.repo / ".git/commondir").write_text(f"{elsewhere(scene)}/.git\n")
    assert SECRET in scene.plain("log")


def work_tree(scene: Scene) -> None:
    scene.config("core.worktree", str(elsewhere(scene)))
    assert "secret.txt" in scene.plain("status")


def alternates(scene: Scene) -> None:
    path = elsewhere(scene)
    (scene.repo / ".git/objects/info/alternates").write_text(f"{path}/.git/objects\n")
    commit = scene.plain("-C", str(path), "rev-parse", "HEAD").strip()
    scene.plain("update-ref", "refs/heads/main", commit)
    assert SECRET in scene.plain("log")


def linked_file(scene: Scene) -> None:
    (scene.repo / "link").symlink_to(elsewhere(scene) / "secret.txt")
    (scene.repo / ".gitattributes").symlink_to(scene.outside / "private/secret.txt")


@pytest.mark.parametrize(
    "trick",
    [git_file, git_link, common_dir, work_tree, alternates, linked_file],
    ids=lambda trick: trick.__name__,
)
async def test_nothing_outside_is_read(trick: Callable[[Scene], None], scene: Scene) -> None:
    trick(scene)
    said = await all_of(git_of(scene, SshAccess(None, [])), "status", "log", "commit", "log")
    assert SECRET not in "".join(said)
    assert "secret.txt" not in "".join(said)
    if trick in (work_tree, linked_file):
        assert SECRET not in scene.plain("grep", SECRET, "main")
