"""A Python file as text: decoding, the byte-order mark, newlines, offsets to lines and columns."""

from __future__ import annotations

import bisect
import codecs
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property

_NEWLINE = re.compile(r"\r\n|\n|\r")


class SourceError(Exception):
    """The bytes can't be read as Python source; the message says why."""


@dataclass(frozen=True)
class Source:
    """Decoded text, and what is needed to write it back to the same bytes."""

    text: str
    encoding: str = "utf-8"
    bom: bool = False

    @classmethod
    def decode(cls, data: bytes) -> Source:
        """Decode by PEP 263: byte-order mark, coding cookie, else UTF-8.

        Raises:
            SourceError: unknown encoding, bytes that aren't valid in it, or null bytes.
        """
        bom = data.startswith(codecs.BOM_UTF8)
        body = data[len(codecs.BOM_UTF8) :] if bom else data
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            encoding = "utf-8" if bom else encoding
            text = body.decode(encoding)
        except (SyntaxError, LookupError) as error:
            raise SourceError(str(error)) from None
        except UnicodeDecodeError as error:
            line = body[: error.start].count(b"\n") + 1
            raise SourceError(
                f"byte 0x{body[error.start]:02x} in line {line} is not {error.encoding}"
            ) from None
        if "\0" in text:
            raise SourceError("it holds null bytes")
        return cls(text, encoding, bom)

    def encode(self, text: str) -> bytes:
        """Encode new text for the same file."""
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)

    @cached_property
    def newline(self) -> str:
        """The newline that most lines of the file end in."""
        windows = self.text.count("\r\n")
        return "\r\n" if windows * 2 > self.text.count("\n") else "\n"

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line."""
        return [0, *(found.end() for found in _NEWLINE.finditer(self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1, the column in characters."""
        line = bisect.bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line_start(self, offset: int) -> int:
        """Offset of the first character of the line that holds ``offset``."""
        return self.line_starts[bisect.bisect_right(self.line_starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """Offset just past the newline of the line that holds ``offset``."""
        index = bisect.bisect_right(self.line_starts, offset)
        return self.line_starts[index] if index < len(self.line_starts) else len(self.text)
