"""E-mails (.eml) before they become Markdown: HTML as that of pages, lines of plain text kept apart."""

from __future__ import annotations

import email
import email.policy
import re
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message

from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.html import prepare_html, write_html
from crag_core.retrieval.readers.packages import text_of
from crag_core.retrieval.readers.text import join_lines, normalise_text

# Where a mail program wrapped a paragraph; "-- " stands above a signature (RFC 3676).
_SOFT_BREAK = re.compile(r"(?<!\n--) \r?\n(?=[^\s>])(?!--\s)")


def prepare_mail(content: bytes) -> tuple[bytes, list[str]]:
    """What was left out is told in words."""
    lost = dict[str, None]()
    # The newer policy of the standard library fails on headers that real mails have.
    mail = email.message_from_bytes(content.lstrip(b"\xef\xbb\xbf\r\n"), policy=email.policy.compat32)
    for part in [*mail.walk()]:
        inner = part.get_payload()
        if isinstance(inner, list):
            inner[:] = [one for one in inner if not isinstance(one, Message) or _prepare(one, lost)]
            if part.get_content_type() == "message/rfc822" and isinstance(inner[0], Message):
                inner.insert(0, _unfold(part, inner[0]))
    _prepare(mail, lost)
    return mail.as_bytes(), [*lost]


def _unfold(part: Message, mail: Message) -> Message:
    """Makes a mail inside another a text of that; its head as a text."""
    names = ("Subject", "From", "To", "Date")
    head = Message()
    _write(head, "text/plain", "\n\n".join(f"{name}: {_decoded(mail[name])}" for name in names if mail[name]))
    for header in ("Content-Type", "Content-Disposition", "Content-Transfer-Encoding"):
        del part[header]
    part["Content-Type"] = "multipart/mixed"
    return head


def _decoded(written: str) -> str:
    try:
        return " ".join(str(make_header(decode_header(written))).split())
    except (LookupError, ValueError, HeaderParseError):
        return str(written)


def _prepare(part: Message, lost: dict[str, None]) -> bool:
    """Whether it stays: HTML that shows nothing leaves, so that the plain text beside it is read.

    Raises `DocumentRefused` for elements nested too deeply.
    """
    written, kind = part.get_payload(decode=True), part.get_content_type()
    if kind not in ("text/html", "text/plain") or part.get_filename() or not isinstance(written, bytes):
        return True
    declared = str(part.get_param("charset", "") or "")
    if kind == "text/html":
        _, root, left_out = prepare_html(written, "the mail", declared)
        lost |= dict.fromkeys(left_out)
        shown, made = text_of(root), write_html(root)
    else:
        text = decode_text(written, declared)
        if str(part.get_param("format", "")).lower() == "flowed":
            text = _SOFT_BREAK.sub(" ", text)
        shown = join_lines(normalise_text(text))
        made = shown.replace("\n", "\n\n")
    _write(part, kind, made)
    return bool(shown) or kind == "text/plain"


def _write(part: Message, kind: str, text: str) -> None:
    for header in ("Content-Type", "Content-Transfer-Encoding"):
        del part[header]
    part["Content-Type"] = kind
    part.set_payload(text.encode("utf-8", "ignore").decode(), "utf-8")
