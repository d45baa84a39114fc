"""The one tree of errors. Each knows its code on the wire and whether trying again may help."""

from typing import ClassVar


class ChoraleError(Exception):
    """Anything that Chorale itself refuses or fails at. `str(error)` is fit for a client's eyes."""

    code: ClassVar[str] = "server_error"
    retryable: ClassVar[bool] = False


class WireError(ChoraleError):
    """A client's message is invalid: names the field and what was expected; the session lives on.

    `code` is one of the protocol's error codes, `param` the path of the field (``session.audio.input.format``).
    """

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.wire_code = code
        self.param = param


class Overloaded(ChoraleError):
    """There is no room now; `retry_after_s` says when to try again. `is_tenant`: there is none for this tenant,
    whatever others find."""

    code: ClassVar[str] = "rate_limit_exceeded"
    retryable: ClassVar[bool] = True

    def __init__(self, message: str, retry_after_s: float, is_tenant: bool = False) -> None:
        super().__init__(f"{message}; try again in {retry_after_s:.1f} s")
        self.retry_after_s = retry_after_s
        self.is_tenant = is_tenant


class SessionClosed(ChoraleError):
    """The session has ended or never existed."""

    code: ClassVar[str] = "session_expired"


class Unauthorized(ChoraleError):
    """The key or secret is missing, unknown or expired."""

    code: ClassVar[str] = "invalid_api_key"


class DeadlineExceeded(ChoraleError):
    """The work was not done in the time it had."""

    code: ClassVar[str] = "deadline_exceeded"
    retryable: ClassVar[bool] = True


class WorkerFailed(ChoraleError):
    """A worker could not do a job, after the repeats that it is allowed. `kind` names the engine (``asr``)."""

    code: ClassVar[str] = "worker_failed"
    retryable: ClassVar[bool] = True

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ConfigError(ChoraleError):
    """The configuration is wrong; the text lists every fault with its key."""

    code: ClassVar[str] = "invalid_configuration"


class ModelMissing(ChoraleError):
    """A model is not on this machine; `install` is the command that brings it."""

    code: ClassVar[str] = "model_missing"

    def __init__(self, role: str, wanted: str, install: str) -> None:
        super().__init__(f"no model for {role}: {wanted} is not installed. Install it with: {install}")
        self.role = role
        self.install = install


class InvalidState(AssertionError):
    """Our own fault: a state machine met an event that its table does not list."""

    def __init__(self, machine: str, state: object, event: object) -> None:
        super().__init__(f"{machine}: no transition from {state} on {event}")
