"""Whether an image is one that the models take. Pure: looks at the first bytes of the file."""

import struct

_BYTES_MOST = 3_700_000  # the API takes 5 MB of base64
_SIDE_MOST_PX = 8000
_KINDS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def image_problem(raw: bytes, mime_type: str) -> str | None:
    """Why it can not be shown, or None."""
    if len(raw) > _BYTES_MOST:
        return f"it has more than {_BYTES_MOST} bytes"
    magic = _KINDS.get(mime_type)
    if magic is None:
        return f"the models take only {', '.join(sorted(_KINDS))}"
    if not raw.startswith(magic):
        return "it is not what its type says"
    try:
        width, height = _size(raw, mime_type)
    except (struct.error, IndexError):
        return "it is cut off"
    if not (0 < width <= _SIDE_MOST_PX and 0 < height <= _SIDE_MOST_PX):
        return f"it measures {width} by {height} pixels; {_SIDE_MOST_PX} is the most"
    return None


def _size(raw: bytes, mime_type: str) -> tuple[int, int]:
    """Width and height. Raises struct.error or IndexError when the file ends too early."""
    match mime_type:
        case "image/png":
            width, height = struct.unpack(">II", raw[16:24])
        case "image/gif":
            width, height = struct.unpack("<HH", raw[6:10])
        case "image/webp":
            width, height = _webp(raw)
        case _:
            width, height = _jpeg(raw)
    return width, height


def _webp(raw: bytes) -> tuple[int, int]:
    match raw[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(raw[at : at + 3], "little") + 1 for at in (24, 27))
            struct.unpack("<6x", raw[24:30])
        case b"VP8L":
            (bits,) = struct.unpack("<I", raw[21:25])
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = (each & 0x3FFF for each in struct.unpack("<HH", raw[26:30]))
    return width, height


def _jpeg(raw: bytes) -> tuple[int, int]:
    at = 2
    while True:
        marker, length = raw[at + 1], struct.unpack(">H", raw[at + 2 : at + 4])[0]
        if raw[at] != 0xFF:
            raise IndexError
        # A start of frame; C4, C8 and CC are tables.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return width, height
        at += 2 + length
