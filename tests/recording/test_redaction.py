"""A recording whose text is blanked holds nobody's words, and still tells what happened when."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.recording.journal import read, standing_of
from orchestrator.recording.lines import contents
from orchestrator.recording.redaction import redact
from orchestrator.recording.scribe import Opening, Scribe
from orchestrator.recording.sound import Mark
from orchestrator.sessions import events as on
from orchestrator.sessions.rules import SessionRules
from tests.recording.test_journal import spoken_turn
from tests.sessions.talk import Talk, view

KEY = bytes(range(16))


LEAVES = st.none() | st.integers() | st.text()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_no_sentence_survives(value: object) -> None:
    """Whatever JSON it is: a string with a space in it, wherever it stands, is not there any more."""
    found: list[str] = []

    def strings(one: object) -> None:
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, list):
            for inner in one:
                strings(inner)
        elif isinstance(one, dict):
            for name, inner in one.items():
                strings(name)
                strings(inner)

    strings(msgspec.json.decode(redact(msgspec.json.encode(value), KEY)))
    assert not [text for text in found if " " in text or (text and ord(max(text)) > 127)]


def test_equal_words_stay_equal_and_lengths_stay() -> None:
    """Within a recording one can see that a text came twice; with another key its hash is another."""
    said = b'{"text":"fifteen","transcript":"fifteen","delta":"fifty","item_id":"item_1"}'
    blank = msgspec.json.decode(redact(said, KEY))
    assert blank["text"] == blank["transcript"] != blank["delta"]
    assert blank["text"].endswith(":7")
    assert blank["item_id"] == "item_1"
    assert redact(b'{"text":"fifteen"}', KEY) != redact(b'{"text":"fifteen"}', bytes(16))


def test_a_blanked_recording_has_times_and_no_words_and_no_sound() -> None:
    """Of a real turn neither the user's words nor the assistant's nor the instructions are in the file; its steps can
    be read, with their times and probabilities."""
    whole = spoken_turn().journal()
    opening = Opening(view(), SessionRules(), "T", "secret", 0, ("text", "sound"), KEY)
    scribe, heart = Scribe(opening), Talk().heart
    data = scribe.header()
    for step in whole.steps():
        data += scribe.step(step.event, step.now, (), standing_of(heart))
    line, block = scribe.sound((Mark(0, 0, 3, True),), np.arange(3, dtype=np.int16))
    data += line
    assert block == b""
    for word in (b"hello", b"Hi there", b"Be kind", b"friendly"):
        assert word not in data
    again = read(data)
    assert [step.now for step in again.steps()] == [step.now for step in whole.steps()]
    heard = [step.event for step in again.steps() if isinstance(step.event, on.AudioHeard)]
    assert heard == [step.event for step in whole.steps() if isinstance(step.event, on.AudioHeard)]
    assert [one.pcm.tolist() for one in again.deliveries()] == [[0, 0, 0]]
    assert all(b"secret" not in content for content in contents(data))


def test_what_a_text_is_like_is_blanked_too() -> None:
    """Cosines with the intents of a domain would tell what was said, though they are numbers."""
    report = {"job_id": "j", "likeness": {"intent:home.lock_door": 9_100}, "confidence": 0.9}
    left = msgspec.json.decode(redact(msgspec.json.encode(report), KEY))
    assert left == {"job_id": "j", "likeness": {}, "confidence": 0.9}
