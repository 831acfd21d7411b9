"""E-mails (.eml) before they become Markdown: HTML as that of pages, lines of plain text kept apart."""

from __future__ import annotations

import base64
import email
import email.policy
from email.message import Message

from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.html import prepare_html
from crag_core.retrieval.readers.text import join_lines, normalise_text


def prepare_mail(content: bytes) -> bytes:
    # The newer policy of the standard library fails on headers that real mails have.
    mail = email.message_from_bytes(content.lstrip(b"\xef\xbb\xbf\r\n"), policy=email.policy.compat32)
    for part in [*mail.walk()]:
        inner = part.get_payload()
        if isinstance(inner, list):
            inner[:] = [one for one in inner if not isinstance(one, Message) or _prepare(one)]
    _prepare(mail)
    return mail.as_bytes()


def _prepare(part: Message) -> bool:
    """Whether it stays: HTML that shows nothing leaves, so that the plain text beside it is read.

    Raises `DocumentRefused` for elements nested too deeply.
    """
    from lxml import etree

    written, kind = part.get_payload(decode=True), part.get_content_type()
    if kind not in ("text/html", "text/plain") or part.get_filename() or not isinstance(written, bytes):
        return True
    declared = str(part.get_param("charset", "") or "")
    if kind == "text/html":
        _, root, _ = prepare_html(written, "the mail", declared)
        shown, made = "".join(root.itertext()), etree.tostring(root, encoding="utf-8", method="html")
    else:
        shown = join_lines(normalise_text(decode_text(written, declared)))
        made = shown.replace("\n", "\n\n").encode()
    part.set_payload(base64.encodebytes(made).decode())
    for header in ("Content-Type", "Content-Transfer-Encoding"):
        del part[header]
    part["Content-Type"], part["Content-Transfer-Encoding"] = f"{kind}; charset=utf-8", "base64"
    return bool(shown.strip()) or kind == "text/plain"
