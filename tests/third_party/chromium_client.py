"""A page in Chromium, against a server of another origin: its own `EventSource`, and the stock client for gRPC-Web.

The first argument is the client: ``events`` or ``connect`` (`javascript/page.mjs`).
"""

import asyncio
import base64
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from selenium.common import WebDriverException

from tests.browser.chromium import Page, chromium
from tests.third_party.stage import Complaints, Scenario, Stage, must, play

FOLDER = Path(__file__).parent / "javascript"
PACKAGES = ("@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-web")
_LIMIT_S = 150

PLAY = """
const [client, scenario, url, question, descriptors, done] = arguments;
window.play(client, scenario, url, question, descriptors).then(done);
"""


def page_text() -> str:
    """Returns the page: it tells the browser where the modules of packages are, as their authors say."""
    modules = {}
    for name in filter(is_installed, PACKAGES):
        for entry, kinds in _described(name)["exports"].items():
            modules[f"{name}{entry[1:]}"] = f"/node_modules/{name}{kinds['import'][1:]}"
    imports = json.dumps({"imports": modules})
    return (
        "<!doctype html><meta charset=utf-8><title>A page</title><link rel=icon href=data:,>"
        f"<script type=importmap>{imports}</script><script type=module src=/page.mjs></script>"
    )


def is_installed(package: str) -> bool:
    return (FOLDER / "node_modules" / package).is_dir()


def _described(package: str) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    found: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(
        (FOLDER / "node_modules" / package / "package.json").read_text()
    )
    return found


class _Files(SimpleHTTPRequestHandler):
    """The page, and the modules beside it."""

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        text = page_text().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def opened() -> Iterator[Page]:
    """A browser with the page open."""
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(FOLDER))) as files,
        chromium() as page,
    ):
        serving = threading.Thread(target=files.serve_forever)
        serving.start()
        try:
            page.driver.set_script_timeout(_LIMIT_S)
            page.open(f"http://localhost:{files.server_port}/")
            page.wait_for(lambda: page.script("return Boolean(window.play)"), "the page's modules")
            yield page
        finally:
            files.shutdown()
            serving.join()


def played(client: str, scenario: str, descriptors: str | None) -> Scenario:
    """Returns a scenario that is played by the page, in a browser of its own. `descriptors`: what a client of the
    service knows it by (FileDescriptorSet in base64)."""

    def run(stage: Stage) -> str:
        question = base64.b64encode(stage.question).decode()
        with opened() as page:
            asked = (client, scenario, stage.url, question, descriptors)
            ok, detail = page.driver.execute_async_script(PLAY, *asked)
            must(ok, detail)
            # A request that is refused on purpose stands in the console, too.
            complaints = [] if scenario == "odd" else page.complaints()
            must(not complaints, "; ".join(complaints))
            return str(detail)

    async def scene(stage: Stage) -> str:
        try:
            return await asyncio.to_thread(run, stage)
        except WebDriverException as why:
            raise AssertionError(str(why.msg)) from None

    return scene


def main() -> None:
    client = sys.argv[1]
    task = json.loads(Path(sys.argv[-1]).read_text())
    with chromium() as page:
        versions = {"chromium": str(page.driver.capabilities["browserVersion"])}
    if client == "connect":
        versions |= {name: str(_described(name)["version"]) for name in PACKAGES[2:]}
    scenarios = {name: played(client, name, task["descriptors"]) for name in task["scenarios"]}
    play((), scenarios, Complaints(), versions)


if __name__ == "__main__":
    main()
