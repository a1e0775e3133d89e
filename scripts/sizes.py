"""No file over 400 lines, no function over 60: `python scripts/sizes.py [FOLDER …]`."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 60


def too_long(path: Path) -> Iterator[str]:
    """What of a file is too long, a line of text for each."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > FILE_LINES:
        yield f"{path}: {lines} lines, at most {FILE_LINES}"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                where = f"{path}:{node.lineno}: {node.name}"
                yield f"{where} has {length} lines, at most {FUNCTION_LINES}"


def main(folders: list[str]) -> int:
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.py"))]
    problems = [problem for file in files for problem in too_long(file)]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["agentd", "tests", "scripts"]))
