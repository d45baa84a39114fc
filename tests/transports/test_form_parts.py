"""Forms in parts, of which no file stays open."""

import asyncio
import gc
import warnings
from collections.abc import AsyncGenerator

import pytest
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException

from orchestrator.transports.form_parts import FormParts

KIND = Headers({"content-type": "multipart/form-data; boundary=b"})
FILE = b'--b\r\nContent-Disposition: form-data; name="%b"; filename="a"\r\n\r\nwords'
END = b"\r\n--b--\r\n"


async def read(body: bytes) -> FormData:
    async def chunks() -> AsyncGenerator[bytes, None]:
        yield body

    return await FormParts(KIND, chunks()).parse()


def test_form_that_breaks_off_in_a_file_leaves_none_open() -> None:
    """What was whole of it is there to be read, and is closed by who reads it; the rest nobody sees."""

    async def main() -> None:
        form = await read(FILE % b"one" + b"\r\n" + FILE % b"two")
        assert list(form) == ["one"]
        one = form["one"]
        assert isinstance(one, UploadFile)
        assert await one.read() == b"words"
        await form.close()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert told == []


def test_whole_form_is_read_and_a_broken_one_refused() -> None:
    """As by the base."""

    async def main() -> None:
        form = await read(FILE % b"one" + END)
        assert list(form) == ["one"]
        await form.close()
        with pytest.raises(MultiPartException):
            await read(b"none")

    asyncio.run(main())
