"""Files that nobody indexes: so many of a session, so many of all, by requests of its own to the address of uploads."""

from __future__ import annotations

import asyncio
import re
import uuid
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from starlette.exceptions import HTTPException
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from websockets.asyncio.client import ClientConnection, connect

from tests.browser.conftest import serve
from ui.session.uploads import bounded

SCRIPT = """
import streamlit as st
from ui.session import uploads

uploads.MOST_FILES, uploads.MOST_MB, uploads.MOST_MB_IN_ALL = 5, 4, 100
uploads.bound()
st.file_uploader("Files", key="files", accept_multiple_files=True)
"""
MEGABYTE = 2**20


def make(limit: int = 3, size: int = 100_000, in_all: int = 300_000) -> MemoryUploadedFileManager:
    files = MemoryUploadedFileManager("/upload")
    files.add_file = bounded(files, limit, size, in_all)  # type: ignore[method-assign]
    return files


def put(files: MemoryUploadedFileManager, session: str, file_id: str, size: int = 1) -> int:
    """The status that a request would be answered with."""
    try:
        files.add_file(session, UploadedFileRec(file_id, "a.txt", "text/plain", b"x" * size))
    except HTTPException as refusal:
        return refusal.status_code
    return 204


def test_a_session_holds_so_many_files_and_those_that_are_there_stay() -> None:
    files = make()
    assert [put(files, "one", str(n)) for n in range(5)] == [204, 204, 204, 413, 413]
    assert put(files, "one", "2", 5) == 204, "the same file anew"
    assert [len(file.data) for file in files.get_files("one", ["0", "1", "2", "3"])] == [1, 1, 5]
    assert put(files, "two", "0") == 204
    files.remove_file("one", "0")
    assert put(files, "one", "9") == 204
    files.remove_session_files("one")
    assert [put(files, "one", str(n)) for n in range(4)] == [204, 204, 204, 413]


def test_a_session_holds_so_many_bytes_and_leaves_something_for_every_other() -> None:
    files = make(limit=1000)
    assert put(files, "one", "0", 120_000) == 413 and put(files, "one", "0", 90_000) == 204
    assert put(files, "one", "1", 20_000) == 413
    held = 0
    for session in range(30):
        for n in range(40):
            held += put(files, f"hostile {session}", str(n), 1_000) == 204
    assert held > 30 and held * 1000 + 90_000 < 300_000, "never all of it"
    assert put(files, "one more", "0", 1) == 204, "a small file still finds room"


async def _open(url: str) -> tuple[ClientConnection, str]:
    """A session as a browser opens it, once its page is drawn; its id."""
    socket = await connect(
        url.replace("http", "ws") + "/_stcore/stream", subprotocols=["streamlit"], max_size=None, open_timeout=60
    )  # type: ignore[list-item]
    message = BackMsg()
    message.rerun_script.query_string = ""
    await socket.send(message.SerializeToString())
    session = ""
    while True:
        came = ForwardMsg.FromString(await socket.recv())  # type: ignore[arg-type]
        if came.WhichOneof("type") == "new_session":
            session = came.new_session.initialize.session_id
        if came.WhichOneof("type") == "script_finished":
            return socket, session


def _put(url: str, session: str, size: int, file_id: str = "") -> int:
    with urlopen(f"{url}/_stcore/health") as health:
        cookies = SimpleCookie(health.headers.get("Set-Cookie", ""))
    token = cookies["_streamlit_xsrf"].value if "_streamlit_xsrf" in cookies else ""
    bound = uuid.uuid4().hex
    head = f'--{bound}\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\n'
    body = head.encode() + b"x" * size + f"\r\n--{bound}--\r\n".encode()
    request = Request(
        f"{url}/_stcore/upload_file/{session}/{file_id or uuid.uuid4()}",
        body,
        {
            "Content-Type": f"multipart/form-data; boundary={bound}",
            "X-Xsrftoken": token,
            "Cookie": f"_streamlit_xsrf={token}",
        },
        method="PUT",
    )
    try:
        with urlopen(request, timeout=60) as reply:
            return int(reply.status)
    except HTTPError as refusal:
        return refusal.code


def test_a_server_refuses_what_is_too_much_of_one_session_and_takes_what_others_send(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(SCRIPT, "utf-8")

    async def visit(url: str) -> None:
        (one, first), (other, second) = await _open(url), await _open(url)
        statuses = [await asyncio.to_thread(_put, url, first, 100) for _ in range(8)]
        assert statuses == [204] * 5 + [413] * 3
        assert [await asyncio.to_thread(_put, url, second, MEGABYTE) for _ in range(5)] == [204, 204, 204, 413, 413]
        await one.close()
        await other.close()

    with serve(tmp_path, script, PYTHONPATH=str(Path(__file__).parents[2])) as url:
        asyncio.run(visit(url))


def test_the_application_puts_the_bound_in_place_before_it_draws_anything() -> None:
    source = (Path(__file__).parents[2] / "app.py").read_text("utf-8")
    calls = re.findall(r"(?m)^(\w+\.\w+)\(", source)
    assert calls.index("uploads.bound") < calls.index("st.set_page_config"), calls


@pytest.mark.parametrize("size", [0, 1])
def test_empty_files_count_too(size: int) -> None:
    files = make(limit=10_000, size=50_000)
    assert 413 in [put(files, "one", str(n), size) for n in range(30)]
