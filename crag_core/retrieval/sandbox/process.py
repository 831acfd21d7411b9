"""One child process that parses documents and draws pages, seen from the application."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.protocols import Cancel
from crag_core.retrieval.sandbox.child_process import ChildProcess, ProcessLost, StartFailed, TookTooLong
from crag_core.retrieval.sandbox.protocol import BadFrame, Cutting, Drawing, Limits, Reply, Request, check_reply
from crag_core.retrieval.sandbox.start import start_process

__all__ = ["ParseProcess", "ProcessLost", "StartFailed", "Task", "TookTooLong"]


@dataclass(frozen=True)
class Task:
    """A file to be read, with `drawing` or `cutting` as in `Request`; `name` is for its reader and for the log."""

    name: str
    content: bytes
    drawing: Drawing | None = None
    cutting: Cutting | None = None


class ParseProcess(ChildProcess):
    """`files` is how many it was given."""

    def __init__(self, limits: Limits, idle: float) -> None:
        self.files = 0
        self._limits = limits
        super().__init__(lambda: start_process(limits), idle)

    def ask(self, task: Task, cancel: Cancel) -> tuple[Reply, bytes]:
        """Raises `ProcessLost`, `TookTooLong` or `Stopped`; then it must be ended, as after any other error."""
        self.files += 1
        request = Request(self.files, task.name, task.drawing, task.cutting)
        most = self._limits.reply_bytes(request)
        header, body = self.exchange(request, task.content, self._limits.seconds, cancel, most)
        try:
            return check_reply(header, request.id), body
        except BadFrame as fault:
            raise ProcessLost(f"made no sense ({fault})") from fault
