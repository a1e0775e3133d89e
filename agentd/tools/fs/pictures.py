"""Pictures that a model can look at: which files are some, and which of them it would refuse.

A picture that a provider refuses would stand in every later request of its session, so what can be
known beforehand is: size, measures, and whether the file is whole.
"""

import struct
import zlib

from agentd.domain.errors import ToolError

PICTURE_MOST_BYTES = 5 * 1024 * 1024 // 4 * 3  # 5 MB in base64
_SIDE_MOST = 8000  # pixels; documented for the Messages API
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # segments that say how large it is


def media_type_of(start: bytes) -> str | None:
    """By its first bytes; None for what is no picture."""
    if start.startswith(_PNG):
        return "image/png"
    if start.startswith(_JPEG):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if start[:4] == b"RIFF" and start[8:12] == b"WEBP" else None


def check_picture(data: bytes, media_type: str, path: str) -> tuple[int, int]:
    """Its width and height. Raises ToolError for what no model would take."""
    if len(data) > PICTURE_MOST_BYTES:
        raise ToolError(
            "too_large",
            f"{path} is a picture of more than {PICTURE_MOST_BYTES} bytes",
            next_action_hint="Make a smaller copy of it first.",
        )
    try:
        width, height = _MEASURES[media_type](data)
    except (IndexError, ValueError, struct.error) as error:
        raise ToolError("binary_file", f"{path} is a damaged {media_type}: {error}") from error
    if not (0 < width <= _SIDE_MOST and 0 < height <= _SIDE_MOST):
        raise ToolError(
            "too_large",
            f"{path} is {width} x {height} pixels; a side may have {_SIDE_MOST}",
            next_action_hint="Make a smaller copy of it first.",
        )
    return width, height


def _png(data: bytes) -> tuple[int, int]:
    at, kind = len(_PNG), b""
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 4 : at + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, at + 8 + length)
        if zlib.crc32(body) != checksum:
            raise ValueError("a checksum is wrong")
        at += 12 + length
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    if b"\xff\xd9" not in data[-64:]:
        raise ValueError("its end is missing")
    at = 2
    while data[at + 1] not in _SOF:
        if data[at] != 0xFF:
            raise ValueError("a segment is missing")
        at += 1 if data[at + 1] == 0xFF else 2 + struct.unpack_from(">H", data, at + 2)[0]
    height, width = struct.unpack_from(">HH", data, at + 5)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    if not data.rstrip(b"\0").endswith(b";"):
        raise ValueError("its end is missing")
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    if struct.unpack_from("<I", data, 4)[0] + 8 > len(data):
        raise ValueError("its end is missing")
    match data[12:16]:
        case b"VP8X":
            return (
                int.from_bytes(data[24:27], "little") + 1,
                int.from_bytes(data[27:30], "little") + 1,
            )
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case kind:
            raise ValueError(f"there is no {kind!r}")


_MEASURES = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}
