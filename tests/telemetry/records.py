"""Records as the server makes them, for tests."""

from dataclasses import replace
from typing import Any

from orchestrator.observability.instrument import Ending, JobRecord, TurnRecord

JOB = JobRecord(
    session_id="sess_1",
    turn=1,
    kind="asr",
    tier=2,
    outcome=Ending.COMPLETED,
    submitted_us=1_000_000,
    sent_us=1_050_000,
    waited_us=30_000,
    first_us=1_350_000,
    ended_us=1_360_000,
    worked=(1_055_000, 1_355_000),
)
REPLY = replace(
    JOB,
    kind="llm",
    submitted_us=1_400_000,
    sent_us=1_410_000,
    waited_us=10_000,
    first_us=1_600_000,
    ended_us=2_400_000,
    worked=(1_412_000, 2_399_000),
    input_tokens=120,
    cached_tokens=100,
    output_tokens=41,
)
TURN = TurnRecord(
    session_id="sess_1",
    conversation_id="conv_1",
    turn=1,
    tier=2,
    modality="audio",
    began_us=500_000,
    ended_us=3_000_000,
    outcome=Ending.COMPLETED,
    stages={"listen": (500_000, 1_000_000)},
)


def job(**changes: Any) -> JobRecord:
    return replace(JOB, **changes)


def reply(**changes: Any) -> JobRecord:
    return replace(REPLY, **changes)


def turn(**changes: Any) -> TurnRecord:
    return replace(TURN, **changes)
