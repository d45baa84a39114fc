"""A small part of `chorale bench talk`: four typed turns of one session with the real models."""

import asyncio

import pytest

from benchmarks.talk import questions
from benchmarks.talk_turn import Answer, Talker
from orchestrator.clients.text_socket import RealtimeSocket

pytestmark = pytest.mark.real

WITHIN_S = 120


def test_each_turn_finds_the_prompt_of_the_one_before_in_the_models_cache(server_url: str) -> None:
    """Prompt and reply of a turn are what the next one need not compute: only the new question is. (Spoken ones would
    interrupt each other here, and take replies out of the prompt that nobody had heard.)"""

    async def main() -> list[Answer]:
        async with asyncio.timeout(WITHIN_S), RealtimeSocket.connect(server_url) as socket:
            talker = Talker(socket, spoken=False)
            await talker.begin()
            return [await talker.ask(question) for question in questions("text")[:4]]

    first, *rest = answers = asyncio.run(main())
    assert all(answer.status == "completed" for answer in answers)
    assert all(0 < a.first_text_ms <= a.first_sound_ms <= a.done_ms for a in answers)
    before = first
    for answer in rest:
        # The reply's last tokens may be written otherwise where it ended behind a sentence.
        assert answer.cached_tokens >= before.input_tokens
        assert answer.input_tokens > answer.cached_tokens
        assert answer.new_tokens < 60
        before = answer
