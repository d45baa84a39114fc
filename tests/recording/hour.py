"""An hour of conversation, made by hand: a turn every fifteen seconds, spoken and answered aloud."""

from orchestrator.clock import US_PER_S
from orchestrator.scheduling.work import Speak
from orchestrator.sessions.rules import SessionRules
from tests.recording.memory import MemoryTap
from tests.sessions.talk import Talk, view

TURNS = 240


def recorded(rules: SessionRules) -> tuple[Talk, MemoryTap]:
    """Returns a talk that is written down from its first event on."""
    tap = MemoryTap(view(), rules)
    before = Talk.listener
    Talk.listener = lambda view, rules: tap.stepped
    try:
        return Talk(rules=rules), tap
    finally:
        Talk.listener = before


def hour_of_talk(turns: int = TURNS) -> MemoryTap:
    """Returns its recording, or that of its first turns."""
    talk, tap = recorded(SessionRules(max_session_us=7_200 * US_PER_S))
    for turn in range(turns):
        talk.speak(3_000)
        talk.transcribed(f"And what about number {turn}?")
        for word in f"That is number {turn}. It is a good one, and there are more of them.".split(" "):
            talk.writes(word + " ")
        talk.finishes()
        while talk.open_jobs(Speak):
            talk.sounds(2_000)
            talk.spoke()
        talk.hear(15_000 - 3_700, 0.02)
    return tap
