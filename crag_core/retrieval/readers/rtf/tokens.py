"""Tokens of Rich Text Format, code pages of its fonts, and what its control words stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    rb"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,9})? ?|\\'(?P<code>[0-9a-fA-F]{2})|\\(?P<sign>[^a-zA-Z])|"
    rb"(?P<brace>[{}])|(?P<text>[^\\{}\r\n]+)|[\r\n]+|\\",
    re.DOTALL,
)
# Groups that hold no text of the document. Those opened by "\*" are left out too,
# unless `SHOWN_IN` names them.
LEFT_OUT = frozenset(
    [
        *("annotation", "colortbl", "comment", "filetbl", "fldinst", "fonttbl", "footer", "footerf"),
        *("footerl", "footerr", "ftncn", "ftnsep", "ftnsepc", "header", "headerf", "headerl", "headerr"),
        *("info", "listtable", "listoverridetable", "nonesttables", "objdata", "pict", "revtbl", "rsidtbl"),
        *("rxe", "shpinst", "shprslt", "stylesheet", "tc", "tcn", "themedata", "txe", "upr", "xe"),
        *("xmlnstbl", "nonshppict", "mmathPr", "latentstyles", "datastore"),
    ]
)
# Groups that show text, by the destination in which they stand: text boxes in shapes, Unicode beside its replacement.
SHOWN_IN = {"shptxt": "shpinst", "ud": "upr", "footnote": "", "nesttableprops": ""}
SIGNS = {"~": "\u00a0", "_": "-", "-": "", "{": "{", "}": "}", "\\": "\\", "\n": "\n", "\r": "\n", "\t": "\t"}
WORDS = {
    "tab": "\t",
    "line": "\n",
    "emdash": "\u2014",
    "endash": "\u2013",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
    "zwj": "\u200d",
    "zwnj": "\u200c",
    "nestcell": " | ",
    "nestrow": "; ",
}
CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gb18030",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
"""Codecs of fonts by their character set; the others have that of the document."""


def tokenize(content: bytes) -> Iterator[re.Match[bytes]]:
    r"""Tokens with a group of word (and number), code, sign, brace or text; binary data after "\bin" is skipped."""
    at = 0
    while token := _TOKEN.match(content, at):
        at = token.end()
        if token["word"] == b"bin":
            at += max(int(token["number"] or 0), 0)
            continue
        yield token


def name_code_page(number: int) -> str:
    """The codec of a Windows code page; cp1252 for one that is unknown."""
    special = {65001: "utf-8", 10000: "mac_roman", 936: "gb18030", 1361: "johab"}
    codec = special.get(number, f"cp{number}")
    try:
        "".encode(codec)
    except LookupError:
        return "cp1252"
    return codec
