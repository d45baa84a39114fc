"""How much silence a turn is granted: the words, and how they were said, of just the silence it is in."""

import pytest

from modalities.audio.phrase_end import PhraseEnd
from modalities.audio.prosody import Closing, Prosody
from modalities.audio.segmenter import TAIL_SAMPLES, WINDOW, SpeechEnded
from orchestrator.sessions.end_point import EndPoint
from orchestrator.sessions.events import AudioHeard
from orchestrator.sessions.utterance import Utterance
from orchestrator.wire.session import SemanticVad, ServerVad

SPOKEN = 20
"""Windows of speech from the first one on."""


def event(first: int, probabilities: list[float], phrase: PhraseEnd | None = None) -> AudioHeard:
    stop = (first + len(probabilities)) * WINDOW
    phrases = () if phrase is None else (phrase,)
    return AudioHeard(stop, 0, first, tuple(probabilities), live=True, phrase_ends=phrases)


def phrase(windows: int, held_ms: int) -> PhraseEnd:
    return PhraseEnd(windows * WINDOW, Prosody(120, 4, -20, 0.6, Closing(0.0, 0.0, held_ms, 18.0)))


def utterance(text: str, to: int) -> Utterance:
    return Utterance("item_1", 0, 0, None, text=text, text_to=to * WINDOW)


def silence_until_the_end(point: EndPoint, said: Utterance, phrase_end: PhraseEnd | None = None) -> int:
    """Speaks, then is silent a window at a time; returns the windows of silence that ended the turn."""
    point.observe(event(0, [0.9] * SPOKEN), None)
    for quiet in range(1, 300):
        closing = phrase_end if quiet == 2 else None
        if any(
            isinstance(s, SpeechEnded) for s in point.observe(event(SPOKEN + quiet - 1, [0.0], closing), said)
        ):
            return quiet
    raise AssertionError("the turn never ended")


def test_end_point_waits_longer_for_a_voice_that_is_held() -> None:
    """The words being the same, the close of the voice decides by itself."""
    said = utterance("I want a light roast", SPOKEN)
    waits = [
        silence_until_the_end(EndPoint(SemanticVad(), 60, 0), said, phrase(SPOKEN, held_ms))
        for held_ms in (0, 320)
    ]
    assert waits[1] > 1.5 * waits[0]


def test_end_point_takes_no_pause_for_another() -> None:
    """A phrase that ended elsewhere says nothing about this silence."""
    said = utterance("I want a light roast", SPOKEN)
    without = silence_until_the_end(EndPoint(SemanticVad(), 60, 0), said)
    assert silence_until_the_end(EndPoint(SemanticVad(), 60, 0), said, phrase(SPOKEN - 5, 500)) == without


def test_end_point_does_not_judge_a_silence_by_what_was_said_before_the_last_words() -> None:
    """A file sent at once brings speech and silence in one event: words from before it do not end the turn in it."""
    point, said = EndPoint(SemanticVad(), 60, 0), utterance("Stop!", SPOKEN)
    point.observe(event(0, [0.9] * SPOKEN), None)
    assert point.observe(event(SPOKEN, [0.0] * 5), said) == ()
    assert point.observe(event(SPOKEN + 5, [0.9] * 10 + [0.0] * 20), said) == ()


def test_end_point_ends_a_turn_in_the_event_that_shows_its_end() -> None:
    """Where words, voice and enough silence come together, nobody waits for another event."""
    point, said = EndPoint(SemanticVad(eagerness="high"), 60, 0), utterance("Stop!", SPOKEN)
    point.observe(event(0, [0.9] * (SPOKEN - 1)), None)
    (ended,) = point.observe(event(SPOKEN - 1, [0.9] + [0.0] * 12, phrase(SPOKEN, 0)), said)
    assert isinstance(ended, SpeechEnded)
    assert ended.stop_sample == SPOKEN * WINDOW + TAIL_SAMPLES


@pytest.mark.parametrize("text", ["Stop!", "I want to go to the"])
def test_end_point_of_server_vad_hears_silence_only(text: str) -> None:
    """Whatever was said and however, the client's silence ends the turn."""
    point = EndPoint(ServerVad(silence_duration_ms=480), 60, 0)
    assert silence_until_the_end(point, utterance(text, SPOKEN), phrase(SPOKEN, 500)) == 15
