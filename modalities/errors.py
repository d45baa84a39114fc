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
