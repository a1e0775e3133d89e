"""A Dockerfile as its instructions, and a run of them in folders, as far as Docker is not needed.

What a container would give is put under a root: absolute paths of the file become paths below it.
`USER`, `VOLUME` and the making of users are read, not carried out.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Instruction:
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """Of the JSON form, or split at blanks; without flags, and without HEALTHCHECK's CMD."""
        text = re.sub(r"^(--\S+\s+)*(CMD\s+)?", "", self.text)
        return json.loads(text) if text.startswith("[") else text.split()

    @property
    def flags(self) -> dict[str, str]:
        return dict(re.findall(r"--([\w-]+)=(\S+)", self.text))


Stage = list[Instruction]


def read(path: Path) -> list[Stage]:
    """The instructions of each stage, FROM first."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    stages: list[Stage] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if not line.strip():
            continue
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append([])
        stages[-1].append(Instruction(name, rest.strip()))
    return stages


def ignored(path: str, patterns: Sequence[str]) -> bool:
    """Whether .dockerignore keeps `path`, or a folder above it, from the builder; the last says."""
    result = False
    parts = Path(path).parts
    ways = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    for pattern in patterns:
        wanted = pattern.removeprefix("!").removeprefix("**/")
        anywhere = "**/" in pattern
        if any(fnmatch(Path(way).name if anywhere else way, wanted) for way in ways):
            result = not pattern.startswith("!")
    return result


@dataclass
class Builder:
    """`replaced`: commands of RUN that the caller carries out in another way, by their text."""

    context: Path
    root: Path
    environment: dict[str, str]
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    folder: str = "/"
    ran: list[str] = field(default_factory=list[str])

    def build(self, stage: Stage) -> None:
        for each in stage:
            match each.name:
                case "WORKDIR":
                    self.folder = each.text
                    self.place(each.text).mkdir(parents=True, exist_ok=True)
                case "COPY" if "from" not in each.flags:
                    self._copy(each.words)
                case "RUN":
                    self._run(each.text)
                case "ENV":
                    self._set(each.text)
                case _:
                    pass

    def place(self, path: str) -> Path:
        """Where an absolute path, or one in the working directory, lies here."""
        return self.root / path.lstrip("/") if path.startswith("/") else self._here / path

    def moved(self, text: str) -> str:
        """A text with the paths that the file gives, moved below the root."""
        return re.sub(r"(?<![\w.])/(opt|var/lib|src)\b", rf"{self.root}/\1", text)

    @property
    def _here(self) -> Path:
        return self.place(self.folder)

    def _copy(self, words: list[str]) -> None:
        *sources, target = words
        text = (self.context / ".dockerignore").read_text(encoding="utf-8")
        patterns = [line for line in text.splitlines() if line and not line.startswith("#")]

        def leave_out(folder: str, names: list[str]) -> set[str]:
            here = Path(folder).relative_to(self.context)
            return {name for name in names if ignored(str(here / name), patterns)}

        for source in sources:
            assert not ignored(source, patterns), f".dockerignore keeps {source} from the builder"
            found = self.context / source
            if found.is_dir():
                shutil.copytree(found, self.place(target), ignore=leave_out)
            else:
                shutil.copy(found, self.place(target))

    def _run(self, text: str) -> None:
        for command in text.split(" && "):
            if command.startswith(("useradd ", "chmod ")):
                continue
            words = self.replaced.get(command.strip()) or ["sh", "-ec", self.moved(command)]
            done = subprocess.run(
                words,
                cwd=self._here,
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            self.ran.append(command)

    def _set(self, text: str) -> None:
        for name, value in re.findall(r"(\w+)=(\S+)", text):
            known = value.replace("$PATH", self.environment["PATH"])
            self.environment[name] = self.moved(known)
