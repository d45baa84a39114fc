"""Images inside clients' own items: checked slice by slice and kept as they came. Hearts see their names."""

import base64
from collections.abc import Generator

from msgspec import structs

from orchestrator.errors import WireError
from orchestrator.scheduling.work import PromptMessage, Reply
from orchestrator.sessions.conversation import Entry
from orchestrator.sessions.effects import ForgetPicture
from orchestrator.sessions.outbound import Outbound
from orchestrator.wire.items import HELD_IMAGE, InputImage, Item, Message, Part
from orchestrator.wire.limits import IMAGE_PREFIXES

MAX_PICTURE_BYTES = 16 * 1024 * 1024
"""Images that a session holds, as base64."""

MOST_PICTURES = 8
"""Images of a session that a model sees, the newest."""

_SLICE_CHARACTERS = 65_536
_MAGIC = dict(zip(IMAGE_PREFIXES, (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"), strict=True))


def names_of(item: Item) -> tuple[str, ...]:
    """Returns the names of an item's images that are held."""
    parts = item.content if isinstance(item, Message) else ()
    return tuple(
        part.image_url
        for part in parts
        if isinstance(part, InputImage) and part.image_url.startswith(HELD_IMAGE)
    )


class PictureStore:
    """Holds the data URIs of images by name, at most `limit` characters. Full means: refused. `takes_images` False:
    there is no model that sees, and every image is refused."""

    def __init__(self, takes_images: bool, limit: int = MAX_PICTURE_BYTES) -> None:
        self._takes_images = takes_images
        self._limit = limit
        self._urls: dict[str, str] = {}
        self._held = self._count = 0

    @property
    def held_bytes(self) -> int:
        return self._held

    def read(self, item: Item) -> Generator[None, None, Item]:
        """Returns the item with the names of its images in the place of their data URIs; others get their turn at each
        yield. Of an item that is refused, or whose reading ends before, nothing is kept. Raises `WireError`."""
        if not isinstance(item, Message):
            return item
        parts: list[Part] = []
        kept: list[str] = []
        try:
            for index, part in enumerate(item.content):
                if isinstance(part, InputImage) and not part.image_url.startswith(HELD_IMAGE):
                    name = yield from self._keep(part, f"item.content[{index}]")
                    kept.append(name)
                    part = structs.replace(part, image_url=name)
                parts.append(part)
        except (WireError, GeneratorExit):
            for name in kept:
                self.forget(name)
            raise
        return structs.replace(item, content=tuple(parts)) if kept else item

    def _keep(self, part: InputImage, path: str) -> Generator[None, None, str]:
        url = part.image_url
        if not self._takes_images:
            raise WireError(
                "invalid_value", "The language model of this server takes no images.", f"{path}.type"
            )
        if self._held + len(url) > self._limit:
            raise WireError(
                "invalid_value",
                f"Too many images: at most {self._limit} characters of them are held in a session; delete some.",
                f"{path}.image_url",
            )
        self._held += len(url)
        name = ""
        try:
            yield from check(url, f"{path}.image_url")
            self._count += 1
            name = f"{HELD_IMAGE}{self._count}"
            self._urls[name] = url
        finally:
            if not name:
                self._held -= len(url)
        return name

    def shown(self, work: Reply) -> Reply:
        """Returns the work with its images; one that is held no longer is left out."""
        if not any(message.images for message in work.messages):
            return work
        return structs.replace(work, messages=tuple(map(self._shown, work.messages)))

    def _shown(self, message: PromptMessage) -> PromptMessage:
        held = tuple(
            structs.replace(one, url=self._urls[one.name]) for one in message.images if one.name in self._urls
        )
        return structs.replace(message, images=held)

    def forget(self, name: str) -> None:
        """Lets an image go. Idempotent."""
        self._held -= len(self._urls.pop(name, ""))

    def clear(self) -> None:
        for name in list(self._urls):
            self.forget(name)


class Seen:
    """Which images of a conversation a model still sees (heart): those of the newest items, `MOST_PICTURES` at most.
    What it lets go is not seen again."""

    def __init__(self, out: Outbound) -> None:
        self._out = out
        self._entries: dict[str, tuple[Entry, tuple[str, ...]]] = {}

    def added(self, entry: Entry) -> None:
        names = names_of(entry.item)
        if not names:
            return
        self._entries[entry.id] = (entry, names)
        while sum(len(names) for _, names in self._entries.values()) > MOST_PICTURES:
            self.removed(next(iter(self._entries)))

    def removed(self, item_id: str) -> None:
        """Lets the images of an item go. Idempotent."""
        entry, names = self._entries.pop(item_id, (None, ()))
        if entry is not None:
            entry.unseen = True
        self.refused(names)

    def refused(self, names: tuple[str, ...]) -> None:
        """Nobody wants these."""
        for name in names:
            self._out.do(ForgetPicture(name))


def check(url: str, path: str) -> Generator[None, None, None]:
    """Raises `WireError` naming `path` unless this is a data URI of a PNG or JPEG that is what it says; others get
    their turn at each yield."""
    prefix = next((one for one in IMAGE_PREFIXES if url.startswith(one)), None)
    if prefix is None:
        raise WireError("invalid_value", "Invalid image: expected a data URI of a PNG or JPEG", path)
    for start in range(len(prefix), max(len(url), len(prefix) + 1), _SLICE_CHARACTERS):
        try:
            data = base64.b64decode(url[start : start + _SLICE_CHARACTERS], validate=True)
        except ValueError:
            raise WireError("invalid_value", "Invalid image: expected base64", path) from None
        if start == len(prefix) and not data.startswith(_MAGIC[prefix]):
            kind = prefix.partition(";")[0].removeprefix("data:image/").upper()
            raise WireError("invalid_value", f"Invalid image: this is no {kind}", path)
        yield
