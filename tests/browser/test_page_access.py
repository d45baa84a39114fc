"""The page for everyone: keyboard, names, contrast, motion, small windows. Checks are our own (`audit/audit.js`)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Page, chromium
from tests.browser.places import ROOT
from tests.browser.stand_in import StandIn

pytestmark = pytest.mark.browser

AUDIT = (Path(__file__).parent / "audit" / "audit.js").read_text()

WINDOWS = {"phone": (360, 740), "desktop": (1180, 820)}


def audit(page: Page) -> list[str]:
    faults: list[str] = page.script(AUDIT)
    return faults


def set_window(page: Page, name: str) -> None:
    width, height = WINDOWS[name]
    page.devtools(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=height,
        deviceScaleFactor=1,
        mobile=name == "phone",
    )


def prefer(page: Page, **features: str) -> None:
    named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    page.devtools("Emulation.setEmulatedMedia", features=named)


def states(page: Page, server: StandIn) -> Iterator[str]:
    """Takes the page through everything that it can show, and names each."""
    page.open(server.address)
    yield "before anything"
    page.click("#talk")
    page.wait_for(lambda: page.connection == "live", "the call")
    server.script.tone_s = 30
    page.write("An unusuallylongwordwithoutanyplacetobreakit_" * 3)
    page.wait_for(lambda: page.said_by("assistant", "final"), "an answer")
    yield "while an answer plays"
    server.script.heard = "It is a"
    page.press(Keys.ESCAPE)
    page.wait_for(lambda: page.said_by("assistant", "cut"), "the cut")
    page.click("#mute")
    page.wait_for(lambda: page.script("return document.getElementById('mute').ariaPressed") == "true", "mute")
    yield "muted, after an interruption"
    server.script.fail_reason = "the reply worker is gone"
    page.write("again")
    page.wait_for(lambda: page.said_by("note", "failed"), "the failure")
    page.click("#details-toggle")
    page.wait_for(lambda: page.text("#events"), "the log")
    yield "with the details open"
    page.click("#details-close")
    server.stop()
    page.wait_for(lambda: page.connection == "away", "the page to notice")
    page.wait_for(lambda: page.text("#alert"), "the alert")
    yield "with an alert"


@pytest.mark.parametrize("window", list(WINDOWS))
def test_page_passes_the_audit_in_every_state_light_and_dark(
    stand_in: StandIn, still: Path, window: str
) -> None:
    """Names, labels, structure, AA contrast, targets and no sideways scrolling, at 360 px and on a desktop."""
    faults = []
    with chromium(microphone=still) as page:
        set_window(page, window)
        for state in states(page, stand_in):
            for scheme in ("light", "dark"):
                prefer(page, prefers_color_scheme=scheme)
                faults += [f"{state}, {scheme}: {fault}" for fault in audit(page)]
    assert faults == []


def test_newcomer_reads_from_the_beginning_in_a_low_window(stand_in: StandIn) -> None:
    """What is shown before anything was said does not fit, and is not scrolled to its end, as a conversation is."""
    with chromium() as page:
        page.devtools(
            "Emulation.setDeviceMetricsOverride", width=780, height=420, deviceScaleFactor=1, mobile=False
        )
        page.open(stand_in.address)
        page.script(
            """const list = document.getElementById("scroll");
            const look = () => { window.measured = [list.scrollTop, list.scrollHeight > list.clientHeight]; };
            new ResizeObserver(look).observe(list);"""
        )
        page.wait_for(
            lambda: page.script("return window.measured"), "the page's own look at its size, before"
        )
        assert page.script("return window.measured") == [0, True]


def test_the_audit_finds_what_it_looks_for(stand_in: StandIn) -> None:
    """Each kind of fault, made on purpose, is found: an audit that finds nothing proves nothing."""
    with chromium() as page:
        set_window(page, "phone")
        page.open(stand_in.address)
        page.script(
            """document.querySelector("#details-toggle").replaceChildren();
            document.querySelector("label[for=message]").remove();
            document.querySelector(".welcome p").style.color = "#aaa";
            document.querySelector(".send").style.cssText = "width: 10px; min-height: 10px; height: 10px";
            document.querySelector("#talk").style.cssText = "position: relative; left: 300px";
            document.querySelector("#key").id = "message";"""
        )
        faults = "\n".join(audit(page))
    for expected in (
        "has no name",
        "has no label",
        "contrast",
        "px small",
        "px wide",
        "reaches out",
        "stands 2 times",
    ):
        assert expected in faults, faults


def test_the_page_can_be_used_without_a_mouse(stand_in: StandIn, still: Path) -> None:
    """Tab reaches everything in reading order with a visible focus; Enter, Space and Esc do the rest."""
    focus_is_visible = """
      const element = document.activeElement;
      const style = getComputedStyle(element);
      const frame = element.matches("textarea") ? getComputedStyle(element.closest(".controls")).boxShadow : "none";
      return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2) || frame !== "none";
    """
    stand_in.script.tone_s = 30
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        reached = []
        for _ in range(6):
            page.press(Keys.TAB)
            reached.append(
                page.script("return document.activeElement.id || document.activeElement.className")
            )
            assert page.script(focus_is_visible), f"no visible focus on {reached[-1]}"
        assert reached == ["skip", "details-toggle", "scroll", "talk", "message", "send"]

        page.script("document.getElementById('talk').focus()")
        page.press(Keys.ENTER)
        page.wait_for(lambda: page.connection == "live", "the call")
        page.press(Keys.TAB)
        assert page.script("return document.activeElement.id") == "mute"
        page.press(Keys.SPACE)
        page.wait_for(
            lambda: page.script("return document.getElementById('mute').ariaPressed") == "true", "mute"
        )
        page.press(Keys.TAB, Keys.TAB)
        page.press("hello", Keys.ENTER)
        page.wait_for(lambda: page.said_by("assistant", "final"), "an answer")
        page.press(Keys.ESCAPE)
        page.wait_for(lambda: page.said_by("assistant", "cut"), "the cut")

        page.script("document.getElementById('details-toggle').focus()")
        page.press(Keys.ENTER)
        assert page.script("return document.activeElement.id") == "details-close"
        page.press(Keys.ESCAPE)
        assert page.script("return document.activeElement.id") == "details-toggle"
        assert page.script("return document.getElementById('details').hidden") is True

        page.script("document.getElementById('talk').focus()")
        page.press(Keys.ENTER)
        page.wait_for(lambda: page.connection == "idle", "the end")


def test_the_skip_link_leads_to_the_message_box(stand_in: StandIn) -> None:
    """The first Tab offers a way straight to the message box."""
    with chromium() as page:
        page.open(stand_in.address)
        page.press(Keys.TAB)
        page.press(Keys.ENTER)
        assert page.script("return document.activeElement.id") == "message"


def test_on_a_phone_the_details_keep_the_keyboard_to_themselves(stand_in: StandIn) -> None:
    """Where the drawer covers the page, the page behind it is out of reach, and comes back with the drawer closed."""
    with chromium() as page:
        set_window(page, "phone")
        page.open(stand_in.address)
        page.click("#details-toggle")
        for _ in range(12):
            page.press(Keys.TAB)
            assert page.script("return document.activeElement.closest('#page')") is None
        page.script("document.getElementById('details-close').focus()")
        page.press(Keys.ENTER)
        assert page.script("return document.activeElement.id") == "details-toggle"


def test_screen_readers_hear_finished_messages_only(stand_in: StandIn) -> None:
    """The visible list is no live region: partial words do not chatter. The polite log gets each message once."""
    stand_in.script.answer = "one two three four five six"
    with chromium() as page:
        page.open(stand_in.address)
        page.script(
            """window.announced = [];
            new MutationObserver((changes) => {
              for (const change of changes) {
                window.announced.push(...[...change.addedNodes].map((node) => node.textContent));
              }
            }).observe(document.getElementById("announcer"), { childList: true });"""
        )
        assert (
            page.script("return document.getElementById('entries').closest('[aria-live], [role=log]')")
            is None
        )
        page.write("count")
        page.wait_for(lambda: page.said_by("assistant", "final"), "the answer")
        assert page.script("return window.announced") == ["Chorale: one two three four five six"]


def test_nothing_moves_for_those_who_asked_for_that(stand_in: StandIn, still: Path) -> None:
    """With reduced motion no animation runs, not even while the page is trying to connect."""
    stand_in.script.refuse_status = 503
    running = "return document.getAnimations().length"
    with chromium(microphone=still) as page:
        page.open(stand_in.address)
        page.script("document.getElementById('connection').dataset.state = 'connecting'")
        assert page.script(running) == 1
        prefer(page, prefers_reduced_motion="reduce")
        assert page.script(running) == 0


@pytest.mark.skipif(not os.environ.get("CHORALE_SCREENSHOTS"), reason="CHORALE_SCREENSHOTS is not set")
def test_screenshots_of_every_state(stand_in: StandIn, still: Path) -> None:
    """Keeps pictures of every state for people to look at, under results/page (not in version control)."""
    folder = ROOT / "results" / "page"
    folder.mkdir(parents=True, exist_ok=True)
    for window in WINDOWS:
        with chromium(microphone=still) as page:
            set_window(page, window)
            for number, state in enumerate(states(page, stand_in)):
                for scheme in ("light", "dark"):
                    prefer(page, prefers_color_scheme=scheme)
                    name = f"{window}-{number}-{state.replace(' ', '-').replace(',', '')}-{scheme}.png"
                    assert page.driver.save_screenshot(str(folder / name))
        stand_in.start()
        stand_in.script.fail_reason = None
