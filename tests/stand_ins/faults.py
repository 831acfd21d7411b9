"""What can be made to go wrong with a model server, while it runs."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass
class Faults:
    """Switches read by every request as it is served; all off by default. They combine.

    delay_s       wait before the first byte, headers included (a model being loaded)
    status        answer with this HTTP status and an error body in the words of the wire
    die_after     cut the connection after this many pieces; a reply not streamed is cut before its first byte
    broken_after  after this many pieces send something that is not JSON and end; a reply not streamed is cut short JSON
    error_after   after this many pieces send the wire's own error message and end; not streamed: status 500
    """

    delay_s: float = 0.0
    status: int | None = None
    die_after: int | None = None
    broken_after: int | None = None
    error_after: int | None = None

    def clear(self) -> None:
        """Switch everything off again."""
        for field in fields(self):
            setattr(self, field.name, field.default)
