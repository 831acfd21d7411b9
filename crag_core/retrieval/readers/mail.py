"""E-mails (.eml): headers, text and attachments."""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Callable
from email.message import Message
from pathlib import PurePosixPath

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.library import html_to_text
from crag_core.retrieval.readers.page import MAX_ATTACHMENTS, Page
from crag_core.retrieval.readers.text import join_blocks, join_lines, normalise_text

ReadAttachment = Callable[[bytes, str], tuple[Page, ...]]

_SHOWN = ("From", "To", "Cc", "Date")
# The header parser takes quadratic time.
_LONGEST_HEADER = 5_000


def read_mail(content: bytes, name: str, read_attachment: ReadAttachment) -> tuple[Page, ...]:
    """A page for the mail and one for each attachment that `read_attachment` can read; others are named only."""
    text, attached = _show(_parse(content))
    pages = [Page(text)]
    for part in attached[:MAX_ATTACHMENTS]:
        file = name_part(part)
        pages.append(Page(f"## Attachment: {file}\n\n{_read_attached(part, file, read_attachment)}"))
    return tuple(pages)


def _parse(content: bytes) -> Message:
    # The policy of the standard library fails on headers that real mails have; they are decoded one by one.
    return email.message_from_bytes(content.lstrip(b"\xef\xbb\xbf\r\n"), policy=email.policy.compat32)


def _show(message: Message, is_attached: bool = False) -> tuple[str, list[Message]]:
    """The text of a mail, in which its attachments are named, and these."""
    subject = read_header(message, "Subject")
    lines = [f"{header}: {value}" for header in _SHOWN if (value := read_header(message, header))]
    title = f"# {subject}" if subject and not is_attached else ""
    if subject and is_attached:
        lines.append(f"Subject: {subject}")
    body: list[str] = []
    attached: list[Message] = []
    _sort_parts(message, body, attached)
    named = [f"Attachment: {name_part(part)}" for part in attached]
    return normalise_text(join_blocks([title, "\n".join(lines), *body, "\n".join(named)])), attached


def _read_attached(part: Message, name: str, read_attachment: ReadAttachment) -> str:
    """Of a mail its own text; what is attached to that one is named only."""
    if part.get_content_type() == "message/rfc822" or PurePosixPath(name).suffix.lower() == ".eml":
        inner = _first_inner(part)
        return _show(inner if isinstance(inner, Message) else _parse(_read_bytes(part)), is_attached=True)[0]
    try:
        return "\n\n".join(page.text for page in read_attachment(_read_bytes(part), name))
    except DocumentRefused as refusal:
        return f"Not read: {refusal.message.removeprefix(f'{name}: ')}"


def _sort_parts(part: Message, body: list[str], attached: list[Message]) -> None:
    """Texts go to `body` in their order, files to `attached`."""
    kind = part.get_content_type()
    if part.is_multipart() and kind.startswith("multipart/"):
        inner = [one for one in part.get_payload() if isinstance(one, Message)]
        if kind == "multipart/alternative":
            inner = _choose_alternative(inner)
        for one in inner:
            _sort_parts(one, body, attached)
    elif part.get_content_disposition() == "attachment" or part.get_filename() or kind == "message/rfc822":
        attached.append(part)
    elif kind in ("text/plain", "text/html"):
        body.append(_show_text(part))


def _choose_alternative(parts: list[Message]) -> list[Message]:
    """HTML, which keeps headings, lists and tables; plain text where the HTML is empty."""
    for wanted in ("text/html", "text/plain"):
        for part in reversed(parts):
            shown = [one for one in part.walk() if one.get_content_type() == wanted]
            if shown and _show_text(shown[0]).strip():
                return [part]
    return parts[-1:]


def _show_text(part: Message) -> str:
    content, charset = _read_bytes(part), str(part.get_param("charset", "") or "")
    if part.get_content_type() == "text/html":
        return html_to_text(content, "the mail", charset)[1] if content.strip() else ""
    return join_lines(normalise_text(decode_text(content, charset)))


def _read_bytes(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _first_inner(part: Message) -> object:
    payload = part.get_payload()
    return payload[0] if isinstance(payload, list) and payload else None


def name_part(part: Message) -> str:
    """The name of an attached file, without folders; that of a mail is its subject."""
    name = _tidy_header(str(part.get_filename() or ""))
    inner = _first_inner(part)
    if not name and isinstance(inner, Message):
        name = read_header(inner, "Subject") or "e-mail"
    return re.split(r"[/\\]", name)[-1] or f"a file of type {part.get_content_type()}"


def read_header(message: Message, name: str) -> str:
    """On one line, with encoded words decoded; "" for one that is not there."""
    for key, value in message.raw_items():
        if key.lower() == name.lower():
            return _tidy_header(str(value))
    return ""


def _tidy_header(value: str) -> str:
    # Bytes beyond ASCII come as halves of surrogate pairs.
    written = decode_text(value[:_LONGEST_HEADER].encode("utf-8", "surrogateescape"))
    try:
        shown = str(email.policy.default.header_factory("Subject", " ".join(written.split())))
    # The parser of the standard library raises errors of many types on broken encoded words.
    except Exception:
        shown = written
    return " ".join(normalise_text(shown).split())
