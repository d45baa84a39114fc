"""What goes wrong in the models' own package; the server maps these to errors for clients and operators."""


class ModalityError(Exception):
    """Anything that a modality or an adapter refuses or fails at. `str(error)` is fit for an operator."""


class AdapterUnavailable(ModalityError):
    """A library or file that an adapter needs is not here; `install` is the command that brings it."""

    def __init__(self, what: str, install: str) -> None:
        super().__init__(f"{what} is not available here. Install it with: {install}")
        self.what = what
        self.install = install


class UnknownAdapter(ModalityError):
    """A configuration names an adapter or an option that does not exist; the text lists those that do."""


class PromptTooLong(ModalityError):
    """A prompt or text does not fit into the model and was not to be shortened. `str(error)` is fit for a client."""


class EndpointFailed(ModalityError):
    """An endpoint refused a request, could not be reached, or broke off in the middle of a reply.

    `retry_after_s` is the time it named for another try, None where it named none.
    """

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s
