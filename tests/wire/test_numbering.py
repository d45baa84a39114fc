"""Numbered events are what the plain codec writes, to the last byte."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.wire import codec
from orchestrator.wire import server as wire
from orchestrator.wire.numbering import NumberedEncoder

TEXTS = st.text(max_size=20) | st.sampled_from(['"', "\\", "\n", '""}', "%b%d", "é€😀", "\x00"])
IDS = st.sampled_from(["item_1", "item_2", 'é"\\%b'])
INDICES = st.integers(0, 2)
DELTAS = st.sampled_from([wire.TextDelta, wire.AudioTranscriptDelta]).flatmap(
    lambda kind: st.builds(
        kind, response_id=IDS, item_id=IDS, output_index=INDICES, content_index=INDICES, delta=TEXTS
    )
)
OTHERS = st.builds(wire.ItemDeleted, item_id=IDS) | st.builds(
    wire.TextDone, response_id=IDS, item_id=IDS, output_index=INDICES, content_index=INDICES, text=TEXTS
)


@given(st.sampled_from(["T1", 'é"\\%d']), st.lists(DELTAS | OTHERS, max_size=12), st.integers(1, 2**40))
def test_numbered_events_are_what_the_codec_writes(
    tag: str, events: list[wire.ServerEvent], first: int
) -> None:
    """Whatever stands in ids and texts, and however the parts of several responses take turns."""
    encoder = NumberedEncoder(tag)
    for number, event in enumerate(events, first):
        assert encoder.encode(event, number) == codec.encode(event, f"event_{tag}_{number}")


def test_numbered_delta_says_what_a_part_has_in_common_once() -> None:
    """The second token of a part is written from what the first one left."""
    encoder = NumberedEncoder("T1")
    first = wire.TextDelta("resp_1", "item_1", 0, 0, "Hel")
    encoder.encode(first, 1)
    prepared = encoder._before_text
    encoder.encode(wire.TextDelta("resp_1", "item_1", 0, 0, "lo"), 2)
    assert encoder._before_text is prepared
    encoder.encode(wire.TextDelta("resp_1", "item_2", 0, 0, "lo"), 3)
    assert encoder._before_text is not prepared
