"""Server-sent events as a browser reads them (HTML, "Interpreting an event stream")."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Parsed:
    """An event that is handed to the page, and the id that the browser would come back with."""

    kind: str
    data: str
    last_id: str


def parsed(stream: bytes) -> list[Parsed]:
    """Returns the events of a stream; what is not ended by an empty line is none."""
    found: list[Parsed] = []
    kind, lines, last_id = "", list[str](), ""
    for line in stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]:
        if not line:
            if lines:
                found.append(Parsed(kind or "message", "\n".join(lines), last_id))
            kind, lines = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            lines.append(value)
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            last_id = value
    return found
