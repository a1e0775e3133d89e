"""Takes secrets out of output that comes in pieces, of which none needs to hold a whole one."""

import codecs

from agentd.domain.redactor import Redactor


class RedactedStream:
    """Of one process. What can be no part of a secret is given on at once.

    Bytes that are no text pass as they are.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._waiting = ""

    def feed(self, data: bytes) -> bytes:
        """What is certain after another piece."""
        if not self._redactor:
            return data
        text = self._waiting + self._decoder.decode(data)
        end = self._redactor.settled(text)
        self._waiting = text[end:]
        return self._redacted(text[:end])

    def end(self) -> bytes:
        """The rest."""
        text, self._waiting = self._waiting + self._decoder.decode(b"", final=True), ""
        return self._redacted(text)

    def _redacted(self, text: str) -> bytes:
        return self._redactor.redact(text).encode(errors="surrogateescape")
