"""Files that are sent while there is no room for them."""

import errno
import tempfile
from typing import Any

import pytest
from starlette import formparsers

from tests.transports.asking import Asked, asking
from tests.transports.test_openai_audio import ROUTE, SECOND, counting


def test_file_for_which_the_disk_has_no_room_is_refused_for_now(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """503 with a time to come back, a line of log that is no stack trace, and the next one is heard."""

    class Full(tempfile.SpooledTemporaryFile[bytes]):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    async def test(asked: Asked) -> None:
        async with asked.http() as client:
            with monkeypatch.context() as full:
                full.setattr(formparsers, "SpooledTemporaryFile", Full)
                answer = await client.post(ROUTE, files={"file": ("talk.wav", SECOND)})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert answer.json()["error"]["message"].startswith("there is no room for a file now;")
            assert (await client.post(ROUTE, files={"file": ("talk.wav", SECOND)})).status_code == 200

    asking(test, counting())
    told = [record for record in caplog.records if "no room for a file" in record.getMessage()]
    assert [(record.levelname, record.exc_info) for record in told] == [("WARNING", None)]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
