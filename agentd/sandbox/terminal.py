"""Text without what would steer a terminal: colours, cursors, titles, and control characters."""

import re

# ECMA-48: control sequences, strings that end with BEL or ST, and the escapes of two characters.
_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[PX^_\]][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]"
)
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])


def plain_text(text: str) -> str:
    """What is left; a line that was overwritten (a progress bar) shows as its last state."""
    lines = _SEQUENCES.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2].translate(_CONTROLS) for line in lines)
