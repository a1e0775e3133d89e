"""Takes secrets out of text: every known value, in each of its usual spellings, becomes a mark.

Fast where there is nothing to find: each spelling is sought as a plain string. Line breaks are
looked through, because encoders and terminals break long values.
"""

import base64
import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from urllib.parse import quote, quote_plus

from agentd.domain.jsons import is_array, is_object

_BREAKS = re.compile(r"[\r\n]+")
_IN_HTML = {38: "&amp;", 60: "&lt;", 62: "&gt;", 34: "&quot;", 39: "&#x27;"}
_PROBE_CHARS = 8  # that are sought at once
_LEAST_CHARS = 4  # of a spelling: the stable middle of a short value's base64 may be shorter


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that nobody may see, and what is said in its place.

    `is_part`: a line of a longer one, which is sought as it stands and not in other encodings.
    """

    name: str
    value: str
    is_part: bool = False


class Redactor:
    """Knows the secrets of one installation. Without any it leaves everything as it is."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        known = [secret for secret in secrets if secret.value]
        marks = [_mark(secret) for secret in known]
        self._marks: dict[str, str] = {}
        for secret, mark in zip(known, marks, strict=True):
            for spelling in _spellings(secret):
                # What stands in a mark itself would be replaced again and again.
                if not any(spelling in each for each in marks):
                    self._marks.setdefault(spelling, mark)
        self._least_chars = min(map(len, self._marks), default=0)
        self._most_chars = max(map(len, self._marks), default=0)
        self._by_start: defaultdict[str, list[str]] = defaultdict(list)
        for spelling in self._marks:
            self._by_start[spelling[0]].append(spelling)
        self.names = tuple(dict.fromkeys(secret.name for secret in known))

    def __bool__(self) -> bool:
        return bool(self._marks)

    def __repr__(self) -> str:
        return f"Redactor({', '.join(self.names)})"

    def redact(self, text: str) -> str:
        """The text without secrets. It keeps its line breaks, so lines can still be counted."""
        if not self._marks or len(text) < self._least_chars:
            return text
        flat = text.replace("\n", "").replace("\r", "")
        found = [spelling for spelling in self._marks if spelling in flat]
        return self._replaced(text, flat, found) if found else text

    def cleaned(self, value: Any) -> Any:
        """The JSON value with every text in it redacted, the names of fields, too."""
        if not self._marks:
            return value
        if isinstance(value, str):
            return self.redact(value)
        if is_object(value):
            return {self.redact(str(name)): self.cleaned(each) for name, each in value.items()}
        if is_array(value):
            return [self.cleaned(each) for each in value]
        return value

    def settled(self, text: str) -> int:
        """How much of the start of `text` means the same whatever follows it.

        What is behind that may be the beginning of a secret.
        """
        if not self._marks:
            return len(text)
        flat = text.replace("\n", "").replace("\r", "")
        place = self._open_from(flat)
        if place == len(flat):
            return len(text)
        for first, last, _ in _merged(flat, [each for each in self._marks if each in flat]):
            if first < place <= last:
                place = first
        return _Places(text)(place)

    def _open_from(self, flat: str) -> int:
        """Where the earliest secret begins that `flat` holds the beginning of, at its end."""
        earliest = len(flat)
        for spelling in self._marks:
            start = spelling[:_PROBE_CHARS]
            place = flat.find(start, max(0, len(flat) - len(spelling) + 1))
            while 0 <= place < earliest:
                if spelling.startswith(flat[place:]):
                    earliest = place
                place = flat.find(start, place + 1)
        # Of what is shorter than that, one place after the other.
        for place in range(max(0, len(flat) - _PROBE_CHARS + 1), earliest):
            end = flat[place:]
            if any(each.startswith(end) and each != end for each in self._by_start.get(end[0], ())):
                return place
        return earliest

    def _replaced(self, text: str, flat: str, found: list[str]) -> str:
        place = _Places(text)
        parts: list[str] = []
        end = 0
        for first, last, spelling in _merged(flat, found):
            start, stop = place(first), place(last) + 1
            breaks = "".join(_BREAKS.findall(text[start:stop]))
            parts += [text[end:start], self._marks[spelling], breaks]
            end = stop
        return "".join([*parts, text[end:]])


def _mark(secret: Secret) -> str:
    return f"[secret {secret.name}]"


def _spellings(secret: Secret) -> Iterator[str]:
    """How the value may stand in a text, line breaks left out."""
    value = secret.value
    try:
        raw = value.encode()
    except UnicodeEncodeError:  # bytes of the environment that are no text: nothing encodes them
        yield _BREAKS.sub("", value)
        return
    plain = [
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        value.translate(_IN_HTML),
    ]
    for quoted in (quote(value), quote(value, safe=""), quote_plus(value)):
        plain += [quoted, re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)]
    yield from dict.fromkeys(_BREAKS.sub("", each) for each in plain)
    if secret.is_part:
        return
    yield from (raw.hex(), raw.hex().upper())
    for before in range(3):
        yield from (each for each in _base64(raw, before) if len(each) >= _LEAST_CHARS)


def _base64(raw: bytes, before: int) -> Iterator[str]:
    """The characters that depend on `raw` alone when `before` bytes stand in front of it."""
    first, end = -(-8 * before // 6), 8 * (before + len(raw)) // 6
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(bytes(before) + raw).decode()[first:end]


def _merged(flat: str, found: list[str]) -> list[tuple[int, int, str]]:
    """Where they stand: first and last character; those that overlap are one."""
    spans = sorted(
        (first, first + len(spelling) - 1, spelling)
        for spelling in found
        for first in _each(flat, spelling)
    )
    merged: list[tuple[int, int, str]] = []
    for first, last, spelling in spans:
        if merged and first <= merged[-1][1]:
            before = merged[-1]
            merged[-1] = (before[0], max(before[1], last), before[2])
        else:
            merged.append((first, last, spelling))
    return merged


def _each(text: str, spelling: str) -> Iterator[int]:
    """Where it begins, also where one begins in the middle of another."""
    first = text.find(spelling)
    while first >= 0:
        yield first
        first = text.find(spelling, first + 1)


class _Places:
    """From a place in the text without line breaks to the one in the text itself."""

    def __init__(self, text: str) -> None:
        breaks = list(_BREAKS.finditer(text))
        self._removed = [0, *accumulate(len(each[0]) for each in breaks)]
        self._at = [
            each.start() - removed for each, removed in zip(breaks, self._removed, strict=False)
        ]

    def __call__(self, place: int) -> int:
        return place + self._removed[bisect_right(self._at, place)]
