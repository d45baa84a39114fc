"""Programs that call gRPC by reflection from the command line: ``buf curl`` and ``grpcurl``. They take JSON on their
standard input while the call goes on and write what comes."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.third_party.converse import SERVICE, Refused, Shown, over
from tests.third_party.stage import Complaints, must, play

_PACKAGES = Path(__file__).parent / "javascript" / "node_modules" / "@bufbuild"
BUF = next(map(str, _PACKAGES.glob("buf-*/bin/buf")), "buf")
"""The program itself: the script in front of it would outlive the call."""

_CHUNK_BYTES = 65_536
_SECOND_WORD = re.compile("_([a-z])")


class Buf:
    """How ``buf curl`` is asked."""

    VERSION = (BUF, "--version")

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}"

    def listed(self, what: str) -> Sequence[str]:
        return (BUF, "curl", "--protocol", "grpc", f"--list-{what}", self._url)

    def called(self, method: str, data: str) -> Sequence[str]:
        """`data` is JSON, or ``@-`` for standard input."""
        return (BUF, "curl", "--protocol", "grpc", "-d", data, f"{self._url}/{SERVICE}/{method}")

    @staticmethod
    def status(complaint: str) -> str:
        return str(json.loads(complaint)["code"])


class Grpcurl:
    """How ``grpcurl`` is asked."""

    VERSION = ("grpcurl", "-version")

    def __init__(self, address: str) -> None:
        self._address = address

    def listed(self, what: str) -> Sequence[str]:
        return ("grpcurl", "-plaintext", self._address, "list", *((SERVICE,) if what == "methods" else ()))

    def called(self, method: str, data: str) -> Sequence[str]:
        given = data.removesuffix("-") if data == "@-" else data
        return ("grpcurl", "-plaintext", "-d", given, self._address, f"{SERVICE}/{method}")

    @staticmethod
    def status(complaint: str) -> str:
        return complaint.partition("Code: ")[2].partition("\n")[0]


class Process:
    """A call that goes on while its program runs."""

    def __init__(self, process: asyncio.subprocess.Process, tool: "Buf | Grpcurl") -> None:
        self._process = process
        self._tool = tool
        self._text = ""
        self._decoder = json.JSONDecoder()

    async def send(self, message: Shown) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()

    async def receive(self) -> Shown:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        while True:
            try:
                message, end = self._decoder.raw_decode(self._text)
            except ValueError:
                data = await self._process.stdout.read(_CHUNK_BYTES)
            else:
                self._text = self._text[end:].lstrip()
                shown: Shown = _named_as_in_json(message)
                return shown
            if not data:
                complaint = (await self._process.stderr.read()).decode()
                if complaint:
                    raise Refused(_named(self._tool, complaint))
                raise EOFError
            self._text = (self._text + data.decode()).lstrip()


class Command:
    """What is at an address, asked by a program."""

    def __init__(self, tool: "Buf | Grpcurl") -> None:
        self._tool = tool

    async def services(self) -> Mapping[str, set[str]]:
        services = (await self._run(self._tool.listed("services"))).split()
        methods = (await self._run(self._tool.listed("methods"))).split()
        # buf writes package.Service/Method, grpcurl package.Service.Method
        found: dict[str, set[str]] = {name: set() for name in services}
        for method in methods:
            service, _, name = method.replace("/", ".").rpartition(".")
            found[service].add(name)
        return found

    async def call(self, method: str, request: Shown) -> Shown:
        answer = json.loads(await self._run(self._tool.called(method, json.dumps(request))))
        return dict(_named_as_in_json(answer))

    @asynccontextmanager
    async def converse(self) -> AsyncIterator[Process]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self._tool.called("Converse", "@-"), stdin=pipe, stdout=pipe, stderr=pipe
        )
        assert process.stdin is not None
        try:
            yield Process(process, self._tool)
        finally:
            process.stdin.close()
            process.kill()
            await process.wait()

    async def _run(self, command: Sequence[str]) -> str:
        """Returns what a program writes. Raises `Refused` where it ends with anything but 0."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        output, complaint = await process.communicate()
        if process.returncode:
            raise Refused(_named(self._tool, complaint.decode()))
        return output.decode()


def _named_as_in_json(shown: Any) -> Any:
    """Returns a message with its fields' names as Protobuf's JSON has them: `grpcurl` writes those of the `.proto`."""
    if not isinstance(shown, dict):
        return shown
    return {_SECOND_WORD.sub(_capital, name): _named_as_in_json(value) for name, value in shown.items()}


def _capital(found: re.Match[str]) -> str:
    return found[1].upper()


def _named(tool: "Buf | Grpcurl", complaint: str) -> str:
    try:
        status = tool.status(complaint)
    except ValueError:
        return complaint
    return f"{status.replace('_', '').lower()}: {complaint}"


TOOLS: Mapping[str, type[Buf] | type[Grpcurl]] = {"buf": Buf, "grpcurl": Grpcurl}


def main() -> None:
    name = sys.argv[1]
    tool = TOOLS[name]
    must(shutil.which(tool.VERSION[0]), f"{name} is not there")
    told = subprocess.run(tool.VERSION, capture_output=True, text=True, check=True)
    version = f"{told.stdout}{told.stderr}".split()[-1]
    play((), over(lambda address: Command(tool(address))), Complaints(), {name: version})


if __name__ == "__main__":
    main()
