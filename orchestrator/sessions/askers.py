"""Who asks a session without a link: one request, one event, and the answers that are for nobody else (a heart)."""

from orchestrator.errors import Overloaded

MOST_ASKERS = 16
"""Of one session, at one time."""

_COME_BACK_S = 1.0


class Asker:
    """One who waits for what is answered to an event of its own. Use as a context: it is forgotten at the end."""

    __slots__ = ("_answers", "_askers", "id")

    def __init__(self, id: str, askers: "Askers") -> None:
        self.id = id
        self._askers = askers
        self._answers: list[bytes] = []  # one event is answered a few times at most

    @property
    def answers(self) -> tuple[bytes, ...]:
        """What has been answered so far."""
        return tuple(self._answers)

    def tell(self, data: bytes) -> None:
        """Takes an answer."""
        self._answers.append(data)

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self._askers.forget(self)


class Askers:
    """At most `MOST_ASKERS`; their ids are used again, so that what hangs on an id stays bounded too."""

    def __init__(self) -> None:
        self._asking: dict[str, Asker] = {}

    def __len__(self) -> int:
        return len(self._asking)

    def ask(self) -> Asker:
        """Adds one. Raises `Overloaded` where too many wait already."""
        for number in range(MOST_ASKERS):
            if (id := f"asker_{number}") not in self._asking:
                asker = self._asking[id] = Asker(id, self)
                return asker
        raise Overloaded("too many requests wait for this session", _COME_BACK_S)

    def get(self, id: str) -> Asker | None:
        return self._asking.get(id)

    def forget(self, asker: Asker) -> None:
        """Nobody waits for its answers any more. Idempotent."""
        if self._asking.get(asker.id) is asker:
            del self._asking[asker.id]
