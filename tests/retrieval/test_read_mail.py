"""E-mails: headers and text as a mail program shows them, once; attachments are named."""

from __future__ import annotations

import base64
from email.message import EmailMessage

import pytest

from crag_core.retrieval.readers import read_document
from tests.retrieval.made_files import make_mail

HEAD = b"From: a@example.org\r\nMIME-Version: 1.0\r\n"


def read(content: bytes | EmailMessage) -> str:
    return "\n\n".join(page.text for page in read_document(bytes(content), "a.eml"))


def test_headers_then_text() -> None:
    mail = make_mail()
    mail["Cc"] = "Bo <bo@example.org>"
    assert read(mail).split("\n") == [
        *["# Timetable", "", "From: Ada Berg <ada@example.org>", "", "To: crew@example.org", "", "CC: bo@example.org"],
        *["", "Date: Thu, 04 Mar 2021 09:15:00 +0000", "", "The ferry leaves at nine."],
    ]


def test_of_alternatives_one_is_shown() -> None:
    mail = make_mail()
    unseen = "<style>p{}</style><script>x()</script><p hidden>no</p>"
    mail.add_alternative(f"{unseen}<h2>Times</h2><ul><li>nine<li>noon</ul>", subtype="html")
    assert read(mail).endswith("+0000\n\n## Times\n\n- nine\n- noon")
    mail = make_mail()
    mail.add_alternative("<img src='cid:x'>", subtype="html")
    assert read(mail).endswith("+0000\n\nThe ferry leaves at nine.")


@pytest.mark.parametrize(
    ("headers", "body", "shown"),
    [
        (b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable",
         b"F=C3=A4hre =\r\nnach S=C3=BCden", "Fähre nach Süden"),
        (b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64",
         base64.b64encode("Fähre".encode()), "Fähre"),
        (b"Content-Type: text/plain; charset=iso-2022-jp", "港の船".encode("iso-2022-jp"), "港の船"),
        (b"Content-Type: text/html; charset=iso-2022-jp", "<p>港の船</p>".encode("iso-2022-jp"), "港の船"),
        (b"Content-Type: text/plain; charset=no-such-thing", "Fähre".encode(), "Fähre"),
        (b"Content-Type: text/plain; charset=koi8-r", "Паром".encode("koi8-r"), "Паром"),
        (b"Content-Type: text/html; charset=cp1251", "<meta charset=utf-8><p>Паром".encode("cp1251"), "Паром"),
        (b"X-Nothing: here", b"plain", "plain"),
    ],
)  # fmt: skip
def test_encodings_of_the_text(headers: bytes, body: bytes, shown: str) -> None:
    assert read(HEAD + headers + b"\r\n\r\n" + body).split("\n\n")[-1] == shown


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"=?utf-8?B?RsOkaHJl?=", "Fähre"),
        (b"=?utf-8?Q?F=C3=A4hre_nach?= =?utf-8?Q?_S=C3=BCden?=", "Fähre nach Süden"),
        (b"=?utf-8?Q?F=C3=A4hre?=\r\n nach Norden", "Fähre nach Norden"),
        (b"=?iso-2022-jp?B?GyRCOUEkTkElGyhC?=", "港の船"),
        ("Fähre".encode(), "Fähre"),
        (b"=?no-such?Q?F=41hre?=", "FAhre"),
        (b"=?utf-8?B?!!!?= left", None),
        (b"=?utf-8?Q?" + b"=41" * 30_000, None),
    ],
)
def test_encoded_headers(written: bytes, shown: str | None) -> None:
    text = read(HEAD + b"Subject: " + written + b"\r\n\r\nbody")
    assert text.endswith("body") and (shown is None or text.startswith(f"# {shown}\n"))


def test_attachments_are_named_and_said_to_be_left_out() -> None:
    mail = make_mail()
    mail.add_attachment(b"route,price\nR1,8.40", maintype="text", subtype="csv", filename="fares.csv")
    mail.add_attachment(b"<p>unread", maintype="text", subtype="html", filename="page.html")
    (page,) = read_document(bytes(mail), "a.eml")
    assert page.text.endswith("nine.\n\nAttachments:\n\n fares.csv (19B)\n\n page.html (9B)")
    assert page.left_out == "the attached files"


def test_a_mail_in_a_mail_is_read_where_it_stands_with_its_head_and_files() -> None:
    inner, outer = make_mail("=?utf-8?Q?F=C3=A4hre?=", "inner text"), make_mail("outer", "outer text")
    inner.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    outer.add_attachment(inner)
    behind = EmailMessage()
    behind.set_content("behind")
    outer.attach(behind)
    (page,) = read_document(bytes(outer), "a.eml")
    head = "Subject: Fähre\n\nFrom: Ada Berg <ada@example.org>\n\nTo: crew@example.org\n\nDate: Thu, 04 Mar"
    assert page.text.startswith("# outer") and f"outer text\n\n{head}" in page.text
    assert "+0000\n\ninner text\n\nbehind\n\nAttachments:\n\n plan.pdf (4B)" in page.text
    assert page.left_out == "the attached files"


def test_paragraphs_that_a_mail_program_wrapped_and_text_that_it_crossed_out() -> None:
    text = b"We meet on the \r\npier. \r\n> Who? \r\n-- \r\nAda"
    assert read(HEAD + b"Content-Type: text/plain; format=flowed\r\n\r\n" + text).split("\n\n")[1:] == [
        *["We meet on the pier.", "> Who?", "--", "Ada"]
    ]
    page, remark = read_document(HEAD + b"Content-Type: text/html\r\n\r\n<p>It is <del>3</del> 4.</p>", "a.eml")
    assert page.text.endswith("It is 4.") and remark.left_out == "crossed-out text"


def test_lines_of_plain_text_stay_apart_but_where_it_was_wrapped() -> None:
    wrapped = (
        "The ferry from Kelderport leaves at nine since the tide is early, and everybody\n"
        "who wants to sail with us has to be at the pier at half past eight, with a valid\nticket."
    )
    text = f"{wrapped}\n\n* tea\n* soup\n-- \nAda\nHarbour office"
    shown = read(make_mail(text=text)).partition("+0000\n\n")[2]
    assert shown.split("\n\n") == [wrapped.replace("\n", " "), "* tea", "* soup", "--", "Ada", "Harbour office"]


def test_a_text_that_begins_like_a_mail_is_still_a_text() -> None:
    assert read_document(b"Subject: ferries\n\nThey are late.", "a.txt")[0].text == "Subject: ferries\n\nThey are late."
