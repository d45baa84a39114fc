"""A real browser calls the real WebRTC door: its offer as it makes it, its ears on what the track sends."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Page, chromium
from tests.browser.microphone import babble, silence, write_wav
from tests.clients.answering import WORDS, answering
from tests.transports.calling import loud_extents

pytestmark = pytest.mark.browser

CALL = """
const done = arguments[arguments.length - 1];
(async () => {
  const peer = window.peer = new RTCPeerConnection();
  window.events = [];
  const microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
  peer.addTrack(microphone.getTracks()[0], microphone);
  peer.ontrack = ({ track }) => {
    const audio = window.audio = new Audio();
    audio.srcObject = new MediaStream([track]);
    audio.play();
  };
  const channel = window.channel = peer.createDataChannel("oai-events");
  channel.onmessage = ({ data }) => window.events.push(JSON.parse(data));
  const offer = await peer.createOffer();
  await peer.setLocalDescription(offer);
  const response = await fetch("/v1/realtime/calls", {
    method: "POST", headers: { "Content-Type": "application/sdp" }, body: offer.sdp,
  });
  await peer.setRemoteDescription({ type: "answer", sdp: await response.text() });
  done([offer.sdp, response.status, response.headers.get("Location")]);
})().catch((error) => done(["", 0, String(error)]));
"""

AUDIBLE = 0.005
"""Energy as WebRTC counts it; half a second of a tone at a quarter of full scale has three times as much."""

INBOUND = """
const done = arguments[arguments.length - 1];
window.peer.getStats().then((rows) => done([...rows.values()].find(
  (row) => row.type === "inbound-rtp" && row.kind === "audio")));
"""


def inbound(page: Page) -> dict[str, Any]:
    """What WebRTC counts of the received sound."""
    row: dict[str, Any] = page.driver.execute_async_script(INBOUND)
    return row


def types(page: Page) -> list[str]:
    found: list[str] = page.script("return window.events.map((event) => event.type)")
    return found


def test_a_browser_is_heard_and_hears(tmp_path: Path) -> None:
    """Its offer has no candidates and none follow; it is heard, gets the events in order, and plays the reply."""
    microphone = write_wav(tmp_path / "voice.wav", silence(2), babble(1.2), silence(60))
    with answering() as server, chromium(microphone=microphone) as page:
        page.open(f"{server.url}/healthz")
        offer, status, location = page.driver.execute_async_script(CALL)
        assert status == 201, location
        assert "a=candidate" not in offer
        assert location.startswith("/v1/realtime/calls/rtc_")
        page.wait_for(lambda: "session.created" in types(page), "session.created")
        page.wait_for(lambda: "output_audio_buffer.stopped" in types(page), "the reply to end")
        assert types(page).index("input_audio_buffer.speech_started") < types(page).index("response.created")
        transcripts = page.script(
            "return window.events.filter((event) => event.transcript).map((event) => event.transcript)"
        )
        assert transcripts == [WORDS]
        (start, stop), *_ = [extent for extent in loud_extents(server.session) if extent[1] - extent[0] > 0.1]
        assert stop - start <= 1.4
        page.wait_for(lambda: inbound(page)["totalAudioEnergy"] > AUDIBLE, "the reply to be played")
        assert inbound(page)["packetsLost"] == 0
        page.script("window.peer.close()")
        page.wait_for(lambda: not server.session.links, "the server to notice")
