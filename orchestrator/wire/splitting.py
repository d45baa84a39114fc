"""Long words of a model as several deltas: clients join those, so that nothing of them need be cut."""

MAX_DELTA_CHARACTERS = 8_192
"""One delta. Written as JSON a character takes six bytes at most, so a delta fits into the 64 KiB that a call's channel
carries where its client says nothing."""


def parts_of(text: str) -> tuple[str, ...]:
    """Returns a text in pieces that fit into one delta each; nothing for no text."""
    if len(text) <= MAX_DELTA_CHARACTERS:
        return (text,) if text else ()  # every word of a model but the rarest
    starts = range(0, len(text), MAX_DELTA_CHARACTERS)
    return tuple(text[start : start + MAX_DELTA_CHARACTERS] for start in starts)
