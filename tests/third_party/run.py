"""`make clients`: every client through every scenario, against a real server.

    python -m tests.third_party.run                          all of them, a table at the end
    python -m tests.third_party.run --client pipecat         one of them
    python -m tests.third_party.run --nginx                  through nginx, as configs/nginx.conf has it
    python -m tests.third_party.run --json clients.json      the table as JSON, too

The environments of the clients are made by `make clients`. The server has its embedded models; scenarios under
`SCRIPTED` go to a second one whose language model is a script, where a test needs a call or a long reply for certain:
speech recognition and voice are real there too. Exit codes: 0 all passed, 1 one did not, 2 the command is wrong.
"""

import argparse
import asyncio
import base64
import json
import os
import shutil
import sys
import tempfile
import wave
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from rich.console import Console
from rich.table import Table

from benchmarks import nginx_front
from modalities.adapters.registry import build
from modalities.audio.resample import Resampler
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from tests.real.serving import ROOT, free_port, serving
from tests.third_party.certificate import self_signed
from tests.third_party.clients import CLIENTS, SCENARIOS, SCRIPT, SCRIPTED, TALK, Client, Door
from tests.third_party.tap import Tap

QUESTION = "What is the capital of France?"
_RATE_HZ = 24_000


@dataclass(slots=True)
class Result:
    """How one scenario of one client went. `detail` is what was said, or what was wrong."""

    client: str
    scenario: str
    ok: bool
    detail: str
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is asked: the URL for HTTP, and for gRPC."""

    http: str
    grpc: str


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    results = asyncio.run(_play(options))
    _show(results)
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
    return 0 if results and all(result.ok for result in results) else 1


async def _play(options: argparse.Namespace) -> list[Result]:
    chosen = [client for client in CLIENTS if not options.client or client.name in options.client]
    if not options.client:
        chosen = [client for client in chosen if client.needs is None or shutil.which(client.needs)]
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as servers:
            question = Path(folder) / "question.wav"
            say(question)
            print("starting a server, and one whose language model is a script", file=sys.stderr)
            scripted = {
                "CHORALE_WORKERS__LLM__ENGINE": "scripted",
                "CHORALE_WORKERS__LLM__OPTIONS": json.dumps(SCRIPT),
            }
            real = await _served(servers, Path(folder) / "real.log", {}, options.nginx)
            script = await _served(servers, Path(folder) / "scripted.log", scripted, options.nginx)
            addresses = {name: script if name in SCRIPTED else real for name in SCENARIOS}
            for client in chosen:
                wanted = [s for s in client.scenarios if not options.scenario or s in options.scenario]
                print(f"{client.name}: {', '.join(wanted)}", file=sys.stderr)
                if wanted:
                    results += await _run(client, wanted, addresses, question, Path(folder), options.limit)
    return results


async def _served(servers: AsyncExitStack, log: Path, environment: Mapping[str, str], nginx: bool) -> Address:
    """Starts a server, perhaps with nginx before it, until the stack is left."""
    grpc_port = free_port()
    own = {"CHORALE_SERVER__GRPC__PORT": str(grpc_port), "CHORALE_SERVER__PROXIES": "[127.0.0.1]"}
    url = servers.enter_context(serving(log, {**environment, **own}))
    if not nginx:
        return Address(url, f"http://127.0.0.1:{grpc_port}")
    ports = nginx_front.Ports(int(url.rsplit(":", 1)[1]), grpc_port)
    front = await servers.enter_async_context(nginx_front.without_tls(ports))
    return Address(f"http://127.0.0.1:{front.http}", f"http://127.0.0.1:{front.grpc}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.third_party.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [client.name for client in CLIENTS]
    parser.add_argument("--client", action="append", choices=names, help="only this one; may be repeated")
    parser.add_argument(
        "--scenario", action="append", choices=SCENARIOS, help="only this one; may be repeated"
    )
    parser.add_argument("--nginx", action="store_true", help="nginx before the servers")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON")
    parser.add_argument(
        "--limit", metavar="SECONDS", type=float, default=180.0, help="for one scenario (180)"
    )
    return parser.parse_args(arguments)


def say(path: Path) -> None:
    """Writes the question as our own voice says it."""
    voice = build("speech", "piper", {"variation": 0.0})
    resampler = Resampler(voice.sample_rate_hz, _RATE_HZ)
    pieces = [resampler.feed(piece) for piece in voice.synthesize(QUESTION)]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE_HZ)
        file.writeframes(np.concatenate((*pieces, resampler.flush())).astype("<i2").tobytes())


async def _run(
    client: Client,
    scenarios: Sequence[str],
    addresses: Mapping[str, Address],
    question: Path,
    folder: Path,
    limit_s: float,
) -> list[Result]:
    """Runs one client's program; where it is to be tapped, with a tap of its own on every scenario's line."""
    certificate, context = self_signed(folder) if client.tls else (None, None)
    taps: dict[str, Tap] = {}
    lines: dict[str, str] = {}
    scheme = "https" if client.tls else "http"
    for name in scenarios:
        if client.door is Door.GRPC:
            lines[name] = addresses[name].grpc
        elif not client.tapped:
            lines[name] = f"{addresses[name].http}/v1"
        else:
            taps[name] = Tap(int(addresses[name].http.rsplit(":", 1)[1]), tls=context)
            lines[name] = f"{scheme}://127.0.0.1:{await taps[name].open()}/v1"
    report, task = folder / f"{client.name}.jsonl", folder / f"{client.name}.json"
    report.touch()
    asked = {"scenarios": lines, "question": str(question), "report": str(report), "limit_s": limit_s}
    task.write_text(json.dumps({**asked, "descriptors": _descriptors()}))
    ended = await _program(client, task, certificate, limit_s * len(scenarios) + 60)
    for tap in taps.values():
        await tap.close()
    reported = {line["scenario"]: line for line in map(json.loads, report.read_text().splitlines())}
    missing = {"ok": False, "detail": f"nothing was reported; {ended}"}
    return [_judged(client.name, name, reported.get(name, missing), taps.get(name)) for name in scenarios]


def _descriptors() -> str:
    """Returns what clients without generated code know the service by, in base64."""
    file = FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(file)
    return base64.b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode()


def _judged(client: str, scenario: str, line: Mapping[str, object], tap: Tap | None) -> Result:
    """What the client says of itself, and whether what it was told was right."""
    fields = {key: value for key, value in line.items() if key != "scenario"}
    result = Result(client, scenario, **fields)  # type: ignore[arg-type]  # as `stage.play` wrote it
    if tap is None:
        return result
    if tap.faults:
        result.ok = False
        result.detail = " | ".join([*tap.faults[:3], result.detail])
    elif result.ok and scenario in TALK and not tap.count("response.done"):
        result.ok, result.detail = False, "the server never answered on this line"
    return result


async def _program(client: Client, task: Path, certificate: Path | None, limit_s: float) -> str:
    """Runs a client's program to its end; returns how that came and what it said last."""
    # Little of ours: none of these clients is to find somebody's key.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(task.parent), "LANG": "C.UTF-8"}
    if certificate is not None:
        environment["NODE_EXTRA_CA_CERTS"] = str(certificate)
    try:
        process = await asyncio.create_subprocess_exec(
            *client.command,
            str(task),
            cwd=ROOT,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except FileNotFoundError:
        return f"{client.command[0]} is not there"
    try:
        async with asyncio.timeout(limit_s):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        output, _ = await process.communicate()
    (task.parent / f"{client.name}.log").write_bytes(output)
    return f"ended with {process.returncode}: {output.decode(errors='replace')[-600:]}"


def _show(results: Sequence[Result]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table("client", *SCENARIOS, "versions")
    for client in CLIENTS:
        own = {result.scenario: result for result in results if result.client == client.name}
        if own:
            cells = [_cell(own[name]) if name in own else "" for name in SCENARIOS]
            versions = next((result.versions for result in own.values() if result.versions), {})
            table.add_row(
                client.name, *cells, ", ".join(f"{name} {number}" for name, number in versions.items())
            )
    console.print(table)
    for result in results:
        console.print(
            f"{'ok  ' if result.ok else 'FAIL'} {result.client} {result.scenario}: {' '.join(result.detail.split())}",
            markup=False,
            highlight=False,
        )


def _cell(result: Result) -> str:
    return f"{'ok' if result.ok else 'FAIL'} {result.seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
