"""Where a client wants to read on: the number of a log entry, as clients write it (a heart)."""

import re

_DIGITS = re.compile(r"[0-9]{1,16}", re.ASCII)


def event_number(text: str, tag: str) -> int | None:
    """Returns the number that `text` names: ``event_<tag>_<n>`` of the session with this tag (`ids.event_tag`), or the
    number alone. None for all else: ids of other sessions, of private messages (``…_p<n>``), other digits than ASCII's,
    more than 16 of them."""
    digits = text.removeprefix(f"event_{tag}_")
    return int(digits) if _DIGITS.fullmatch(digits) else None
