"""The project's errors: each says what was expected, what was found and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class CragError(Exception):
    """Base of every error that a user can cause or meet.

    `hint` is the thing to do, often a command. `retryable` tells that the same call may succeed later
    without any change of input.
    """

    retryable = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class BadRecord(CragError):
    """Data from a file, a link or an import does not have the expected shape."""


class WrongUse(CragError):
    """What was typed cannot be meant: an empty question, an option's value, a file that is not there."""


class UnknownName(WrongUse):
    """A name (policy, evaluator, model, file format) that nothing is registered under."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str], *, of: str = "") -> UnknownName:
        names = sorted(known)
        near = get_close_matches(name[:80], names, n=1)
        guess = f"Did you mean {near[0]!r}? " if near else ""
        there = f"Known: {', '.join(names)}." if names else "There is none yet."
        return cls(f"Unknown {kind} {name[:80]!r}{of}.", hint=f"{guess}{there}")


class DocumentRefused(CragError):
    """A file that cannot be indexed; the message names the file and the reason."""


class DocumentMissing(CragError):
    """A document that was asked for by name or id is not in the index."""


class StoreUnavailable(CragError):
    """The passage store cannot be opened, read or written."""

    retryable = True


class HistoryUnavailable(CragError):
    """Kept runs and labels cannot be read or written; everything else works without them."""

    retryable = True


class ScoresUnavailable(CragError):
    """What was graded of labelled sets cannot be read or written."""

    retryable = True


class AuditUnavailable(CragError):
    """The audit log cannot be read or written; everything else works without it."""

    retryable = True


class BackupFailed(CragError):
    """A home cannot be backed up there, or what is given cannot be restored; nothing was changed."""


class EmbeddingUnavailable(CragError):
    """The embedding model cannot be loaded."""


class EvaluatorUnavailable(CragError):
    """The trained evaluator cannot be loaded or run: a file of it is missing, altered or broken."""


class NotCalibrated(CragError):
    """An evaluator by name has no calibration for the files that it has now: no threshold fits its scores."""


class ModelUnavailable(CragError):
    """The language model's server does not answer, went away, or timed out.

    `is_late`: its reply was given up for its time, so that the next call would only wait as long.
    """

    retryable = True

    def __init__(self, message: str, *, hint: str = "", is_late: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_late = is_late


class PromptTooLong(ModelUnavailable):
    """The server found a prompt longer than its model reads at once."""


class ModelMissing(CragError):
    """The server answers but does not have the model."""


class PortUnavailable(CragError):
    """A port that something is to be served at is taken or not allowed."""


class NoLogProbabilities(CragError):
    """The server tells the text of a reply, and not how probable its tokens were."""


class Busy(CragError):
    """More is asked at the same time than this installation takes."""

    retryable = True


class Stopped(CragError):
    """The user stopped the run; what was recorded so far is kept."""

    def __init__(self, message: str = "Stopped by you.", *, hint: str = "") -> None:
        super().__init__(message, hint=hint)


@contextmanager
def as_typed() -> Iterator[None]:
    """Inside, what is wrong with a record is wrong with what somebody has typed: `WrongUse` in place of `BadRecord`."""
    try:
        yield
    except BadRecord as error:
        raise WrongUse(error.message, hint=error.hint) from error


def kind_named(name: str) -> type[CragError]:
    """The error type of this module with that name; `CragError` for any other name."""
    kind = globals().get(name)
    return kind if isinstance(kind, type) and issubclass(kind, CragError) else CragError
