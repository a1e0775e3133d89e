"""Which characters the bytes of a page are: mark, header, the page's own word, then a guess."""

import codecs
import re

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})""")
_HEADER = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_LOOK_BYTES = 4096
_GUESS_BYTES = 32_768
# Browsers read these labels so; pages that say latin-1 or ascii hold quotes of Windows.
_MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
# Python knows codecs that are no character sets (rot13, unicode_escape, idna); only these are.
_KNOWN = re.compile(
    r"utf-8|utf-16(-le|-be)?|utf-32(-le|-be)?|cp(1252|125\d|866|874|932|949|950)|iso8859-\d+|"
    r"koi8-[rut]|mac-\w+|gb18030|big5(hkscs)?|euc_(jp|kr|jis_2004)|shift_jis|iso2022_jp|tis-620"
)
# Guesses that are worth more than windows-1252: between Latin alphabets the guess is often wrong.
_GUESSABLE = re.compile(
    r"cp(866|874|932|949|950|125[1356])|iso8859-[5-8]|koi8-[rut]|gb18030|big5\w*|euc_\w+|shift_jis|"
    r"iso2022_\w+|tis-620"
)


def decode(body: bytes, content_type: str) -> tuple[str, str]:
    """The text, and what it was written in. Bytes that are no character become U+FFFD."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, errors="replace"), name
    name = _declared(body, content_type) or _guessed(body)
    return body.decode(name, errors="replace"), name


def _declared(body: bytes, content_type: str) -> str | None:
    if (found := _HEADER.search(content_type)) and (name := _known(found[1])):
        return name
    start = body[:_LOOK_BYTES]
    for pattern in (_XML, _META):
        if (said := pattern.search(start)) and (name := _known(said[1].decode())):
            # Whoever could read the label can not be writing in two bytes for a character.
            return "utf-8" if name.startswith(("utf-16", "utf-32")) else name
    return None


def _known(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    name = _MEANT.get(name, name)
    return name if _KNOWN.fullmatch(name) else None


def _guessed(body: bytes) -> str:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)  # a body that was cut may end inside
    except UnicodeDecodeError:
        import charset_normalizer  # noqa: PLC0415 - 25 ms, for the rare page that says nothing

        best = charset_normalizer.from_bytes(body[:_GUESS_BYTES]).best()
        name = _known(best.encoding) if best else None
        return name if name and _GUESSABLE.fullmatch(name) else "cp1252"
    return "utf-8"
