"""A model hub that speaks the wire of huggingface.co: revisions, their files, and their contents."""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .local_server import LocalServer


class HubServer(LocalServer):
    """`models` holds the folder of each commit by name and revision, such as ("owner/name", "main").

    `fetched` counts the contents that were sent, by file. `gated`: names that only some may have.
    """

    def __init__(self) -> None:
        super().__init__({})
        self.models: dict[tuple[str, str], Path] = {}
        self.gated: set[str] = set()
        self.fetched: list[str] = []
        self._app = Starlette(
            routes=[
                Route("/api/models/{owner}/{name}", self._info),
                Route("/api/models/{owner}/{name}/revision/{revision:path}", self._info),
                Route("/api/models/{owner}/{name}/tree/{revision}", self._tree),
                Route("/{owner}/{name}/resolve/{revision}/{file:path}", self._file, methods=["GET", "HEAD"]),
            ]
        )

    def put(self, name: str, folder: Path, *revisions: str) -> str:
        """The commit, 40 signs, under which the files of `folder` are to be had, and under `revisions`."""
        commit = _commit(folder)
        for revision in (commit, *revisions):
            self.models[name, revision] = folder
        return commit

    def _found(self, request: Request) -> Path | Response:
        name = f"{request.path_params['owner']}/{request.path_params['name']}"
        revision = request.path_params.get("revision", "main")
        if name not in {known for known, _ in self.models}:
            return _refusal(401, "RepoNotFound", "Invalid username or password.")
        if name in self.gated:
            return _refusal(403, "GatedRepo", "Access to this model is restricted.")
        folder = self.models.get((name, revision))
        return folder or _refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")

    async def _info(self, request: Request) -> Response:
        found = self._found(request)
        if isinstance(found, Response):
            return found
        files = [{"rfilename": path.name, "size": path.stat().st_size} for path in sorted(found.iterdir())]
        name = f"{request.path_params['owner']}/{request.path_params['name']}"
        return JSONResponse({"id": name, "modelId": name, "sha": _commit(found), "siblings": files, "tags": []})

    async def _tree(self, request: Request) -> Response:
        found = self._found(request)
        if isinstance(found, Response):
            return found
        return JSONResponse(
            [
                {"type": "file", "path": path.name, "size": path.stat().st_size, "oid": _etag(path)}
                for path in sorted(found.iterdir())
            ]
        )

    async def _file(self, request: Request) -> Response:
        found = self._found(request)
        if isinstance(found, Response):
            return found
        path = found / request.path_params["file"]
        if not path.is_file():
            return _refusal(404, "EntryNotFound", "Entry not found")
        headers = {"X-Repo-Commit": _commit(found), "ETag": f'"{_etag(path)}"'}
        content = path.read_bytes()
        if request.method == "HEAD":
            return Response(headers=headers | {"Content-Length": str(len(content))})
        self.fetched.append(path.name)
        return Response(content, headers=headers, media_type="application/octet-stream")


def _commit(folder: Path) -> str:
    return hashlib.sha1("".join(_etag(path) for path in sorted(folder.iterdir())).encode()).hexdigest()


def _etag(path: Path) -> str:
    return hashlib.sha1(path.name.encode() + path.read_bytes()).hexdigest()


def _refusal(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": message}, status, {"X-Error-Code": code, "X-Error-Message": message})
