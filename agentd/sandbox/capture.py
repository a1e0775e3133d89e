"""Keeps the start and the end of an output in constant memory, and counts what is between."""

import codecs

_NOTICE = "\n[… {cut} characters are missing here …]\n"


class Capture:
    """`most_chars`: how much is kept, half of it from the start and half from the end."""

    def __init__(self, most_chars: int) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._head_most = most_chars - most_chars // 2
        self._tail_most = most_chars // 2
        self._head = ""
        self._tail: list[str] = []
        self._tail_chars = 0
        self._seen_chars = 0

    @property
    def cut_chars(self) -> int:
        """How much is missing."""
        return max(0, self._seen_chars - self._head_most - self._tail_most)

    def feed(self, data: bytes, *, final: bool = False) -> None:
        """`final`: nothing comes after it."""
        text = self._decode(data, final)
        self._seen_chars += len(text)
        room = self._head_most - len(self._head)
        self._head += text[:room]
        if len(text) > room:
            self._tail.append(text[room:])
            self._tail_chars += len(text) - room
            if self._tail_chars > 2 * self._tail_most + len(text):
                self._trim()

    def text(self) -> str:
        """What is kept, with a notice where something is missing."""
        self._trim()
        notice = _NOTICE.format(cut=self.cut_chars) if self.cut_chars else ""
        return f"{self._head}{notice}{''.join(self._tail)}"

    def _trim(self) -> None:
        joined = "".join(self._tail)
        kept = joined[max(0, len(joined) - self._tail_most) :]
        self._tail, self._tail_chars = [kept], len(kept)
