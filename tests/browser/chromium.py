"""A headless Chromium with a fake microphone, driven over WebDriver."""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common import TimeoutException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait

QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--autoplay-policy=no-user-gesture-required",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)

WATCH_LINKS = """
window.peersForTest = [];
window.socketsForTest = [];
window.WebSocket = class extends WebSocket {
  constructor(...given) { super(...given); window.socketsForTest.push(this); }
};
window.RTCPeerConnection = class extends RTCPeerConnection {
  constructor(...given) { super(...given); window.peersForTest.push(this); }
};
"""

HEARD = """
const done = arguments[arguments.length - 1];
(async () => {
  let energy = 0, seconds = 0;
  for (const peer of window.peersForTest ?? []) {
    for (const row of (await peer.getStats()).values()) {
      if (row.type === "inbound-rtp" && row.kind === "audio") {
        energy += row.totalAudioEnergy ?? 0; seconds += row.totalSamplesDuration ?? 0;
      }
    }
  }
  done([energy, seconds]);
})();
"""


T = TypeVar("T")


class Page:
    """The page in a browser: what a user sees and does, and what reached the loudspeaker."""

    def __init__(self, driver: WebDriver) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get(address)
        self.wait_for(lambda: self.script("return document.readyState") == "complete", "the page to load")

    def script(self, code: str, *arguments: object) -> Any:  # what JavaScript returns is anything
        return self.driver.execute_script(code, *arguments)

    def devtools(self, command: str, **parameters: object) -> Any:  # as above
        return self.driver.execute_cdp_cmd(command, parameters)

    def wait_for(self, find: Callable[[], T], what: str, timeout_s: float = 60) -> T:
        """Returns the first true result of `find`. Fails with `what` and the page's own view of things."""

        def look(_: WebDriver) -> T:
            return find()

        try:
            return WebDriverWait(self.driver, timeout_s, poll_frequency=0.05).until(look)
        except TimeoutException as error:
            raise AssertionError(
                f"waited {timeout_s} s for {what}; the page shows: {self.summary()}"
            ) from error

    def click(self, css: str) -> None:
        self.driver.find_element("css selector", css).click()

    def press(self, *keys: str) -> None:
        """Presses keys where the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def write(self, text: str) -> None:
        """Types a message and sends it with Enter."""
        box = self.driver.find_element("css selector", "#message")
        box.send_keys(text, "\n")

    def text(self, css: str) -> str:
        found: str = self.script("return document.querySelector(arguments[0])?.innerText ?? ''", css)
        return found

    @property
    def connection(self) -> str:
        state: str = self.script("return document.getElementById('connection').dataset.state")
        return state

    def entries(self) -> list[dict[str, str]]:
        """The conversation as shown: voice, phase, text and mark of each entry."""
        rows: list[dict[str, str]] = self.script(
            """return [...document.querySelectorAll("#entries > li")].map((row) => ({
              voice: row.dataset.voice, phase: row.dataset.phase,
              text: row.querySelector(".said").textContent, mark: row.querySelector(".mark").textContent }))"""
        )
        return rows

    def said_by(self, voice: str, phase: str | None = None) -> list[str]:
        rows = [row for row in self.entries() if row["voice"] == voice]
        return [row["text"] for row in rows if phase is None or row["phase"] == phase]

    def heard(self) -> tuple[float, float]:
        """Energy and seconds of the sound received so far, as WebRTC counts them (sum of squares of −1…1 × s)."""
        energy, seconds = self.driver.execute_async_script(HEARD)
        return float(energy), float(seconds)

    def summary(self) -> str:
        if self.script("return document.getElementById('connection') === null"):
            return "another page"
        shown = {"connection": self.connection, "alert": self.text("#alert"), "entries": self.entries()}
        return json.dumps(shown, ensure_ascii=False)

    def complaints(self) -> list[str]:
        """What the browser's console says at level SEVERE: script errors and violations of the policy."""
        rows: list[dict[str, str]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [row["message"] for row in rows if row["level"] == "SEVERE"]


@contextlib.contextmanager
def chromium(
    *flags: str, microphone: Path | None = None, size: tuple[int, int] = (1180, 860)
) -> Iterator[Page]:
    """Runs a browser with a fresh profile. `microphone` is a WAV file that is played once as soon as the page opens the
    microphone; without it there is no such device, and permission is asked for as usual."""
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(prefix="chorale-browser-") as profile:
        fake = (
            "--use-fake-ui-for-media-stream",
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-audio-capture={microphone}%noloop",
        )
        for flag in (*QUIET, *(fake if microphone else ()), *flags, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.add_argument(f"--window-size={size[0]},{size[1]}")
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        page = Page(driver)
        try:
            page.devtools("Page.addScriptToEvaluateOnNewDocument", source=WATCH_LINKS)
            yield page
        finally:
            driver.quit()
