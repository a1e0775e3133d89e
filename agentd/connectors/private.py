"""Files that nobody else may read: headers and tokens stand in them."""

import os
from pathlib import Path


def put(path: Path, text: str) -> None:
    """At once or not at all, also when the power fails; 0600 from its first byte."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
