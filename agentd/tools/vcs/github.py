"""github: look at a repository of the workspace, commit, exchange commits with its remote."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.domain.run import CallKey
from agentd.sandbox.git.git import Git, Moved
from agentd.toolkit.definition import Effect, tool

Action = Annotated[
    Literal["status", "commit", "push", "pull", "log"],
    Field(description="What to do. push and pull go forward only: never by force."),
]
Files = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    Field(min_length=1, description="For commit: what to stage, from the repository's folder."),
]
Message = Annotated[
    str | None, Field(min_length=1, description="For commit: what it says, as git wants it.")
]
Folder = Annotated[
    str, Field(min_length=1, description="The folder of the repository, from the workspace.")
]
_LOG_MOST = 10


@dataclass(frozen=True, slots=True)
class GitDone:
    """`commit`: where the branch stands now, where that is known."""

    content: str
    branch: str | None = None
    commit: str | None = None


async def _reconcile(
    git: Git,
    key: CallKey,
    action: Action,
    files: Files = ["."],  # noqa: B006 - never changed
    message: Message = None,
    path: Folder = ".",
) -> GitDone | None:
    """A commit is found by its call; push and pull go to the same place when they are repeated."""
    del files, message
    found = await git.find_commit(path, key.text) if action == "commit" else None
    if found is None:
        return None
    content = f"Committed {found.commit[:10]} on {found.branch} (before the daemon stopped)."
    return GitDone(content, found.branch, found.commit)


@tool(
    group="vcs",
    effect=Effect.RECONCILABLE,
    reconcile=_reconcile,
    outside=True,  # what others committed, and what a remote answers
    timeout_s=30,
    slash=r'/git (?P<action>status|commit|push|pull|log)(?: "(?P<message>[^"]+)")?',
)
async def github(
    git: Git,
    key: CallKey,
    action: Action,
    files: Files = ["."],  # noqa: B006 - never changed
    message: Message = None,
    path: Folder = ".",
) -> GitDone:
    """Work with a git repository of the workspace and its remote, over SSH or HTTPS.

    status: what differs. commit: stage files and commit them with a message. pull: fetch and fast-
    forward. push: send the commits of this branch. log: the last ten commits. Everything else that
    git can do (branch, diff, merge, remote) works without a network: run git in the workspace.
    """
    match action:
        case "status":
            return GitDone(await git.status(path))
        case "log":
            return GitDone(await git.log(path, _LOG_MOST) or "There are no commits yet.")
        case "commit":
            if message is None or not message.strip():
                raise ToolError("invalid_arguments", "commit needs a message")
            done = await git.commit(path, files, message, key.text)
            return GitDone(done.said, done.branch, done.commit)
        case "pull":
            return _moved("Pulled", await git.pull(path))
        case "push":
            return _moved("Pushed", await git.push(path))


def _moved(verb: str, to: Moved) -> GitDone:
    if not to.changed:
        content = f"{to.branch} was up to date already ({to.commit[:10]})."
    else:
        said = f"\n{to.said}" if to.said and verb == "Pulled" else ""
        content = f"{verb} {to.branch}: it is at {to.commit[:10]} now.{said}"
    return GitDone(content, to.branch, to.commit)
