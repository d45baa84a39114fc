"""What is done to a session from outside: its links, what its client says, its sound. Pure."""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import UNSET, structs

from modalities.audio.frame import bytes_of
from modalities.audio.resample import Resampler
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.recording.journal import Journal
from orchestrator.recording.sound import Delivery
from orchestrator.sessions import events as on
from orchestrator.wire.client import CreateItem
from orchestrator.wire.items import InputAudio, Message

_CLIENT_RATE_HZ = 24_000
_CLIP = "clip:"

FromOutside = on.LinkJoined | on.LinkLeft | on.ClientSaid | on.ClientErred | on.DrainAsked | on.EndAsked


@dataclass(frozen=True, slots=True)
class Input:
    """At `at_us` of the session this happens to it."""

    at_us: int
    what: FromOutside | Delivery


def in_order(inputs: Iterable[Input]) -> list[Input]:
    """Returns inputs by their time; of one moment sound comes first, and the rest as it was."""
    return sorted(inputs, key=lambda one: (one.at_us, not isinstance(one.what, Delivery)))


def inputs_of(journal: Journal) -> list[Input]:
    """Returns what was done to a recorded session. Raises `JournalDamaged`."""
    clips = journal.clips()
    found = [Input(one.at_us, one) for one in journal.deliveries()]
    for step in journal.steps():
        if isinstance(step.event, on.ClientSaid):
            found.append(Input(step.now, with_sound(step.event, clips)))
        elif isinstance(step.event, FromOutside):
            found.append(Input(step.now, step.event))
    return in_order(found)


def with_sound(said: on.ClientSaid, clips: dict[str, Pcm]) -> on.ClientSaid:
    """Returns a client's event with its sound in it again, where hearts had a name for that."""
    event = said.event
    if not isinstance(event, CreateItem) or not isinstance(event.item, Message):
        return said
    parts = tuple(
        InputAudio(audio=_base64(clips.get(part.audio.removeprefix(_CLIP))))
        if isinstance(part, InputAudio) and part.audio is not UNSET and part.audio.startswith(_CLIP)
        else part
        for part in event.item.content
    )
    item = structs.replace(event.item, content=parts)
    return on.ClientSaid(said.link_id, structs.replace(event, item=item), said.position, said.sent_us)


def _base64(pcm: Pcm | None) -> str:
    """Returns 16 kHz sound as clients send it; a tenth of a second of silence where there is none."""
    if pcm is None or not len(pcm):
        return b64encode(bytes(2 * _CLIENT_RATE_HZ // 10)).decode()
    resampler = Resampler(SPEECH_RATE_HZ, _CLIENT_RATE_HZ)
    return b64encode(bytes_of(resampler.feed(pcm)) + bytes_of(resampler.flush())).decode()
