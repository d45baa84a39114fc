/**
 * The conversation and the controls on the screen. Everything that comes from outside is set as text, never as markup.
 *
 * `render(model)` may be called at any rate; it draws at most once per animation frame and touches only what changed.
 */

import { finished, isAnswering, textOf } from "./conversation.js";
import { ACTIONS, explain } from "./faults.js";

const NAMES = { user: "You", assistant: "Chorale", system: "System", tool: "Tool" };

const CONNECTION = {
  idle: "Not connected",
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  away: "Server away",
};

/** How near to its end the list must be scrolled to follow what comes. */
const NEAR_END_PX = 80;

/** Finished messages kept for screen readers. */
const ANNOUNCED = 8;

export class View {
  #document;
  #at;
  #nodes = new Map();
  #drawn = null;
  #next = null;
  #followsEnd = true;

  constructor(document) {
    this.#document = document;
    this.#at = (id) => document.getElementById(id);
    const scroll = this.#at("scroll");
    scroll.addEventListener("scroll", () => {
      this.#followsEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_END_PX;
      this.#at("latest").hidden = this.#followsEnd;
    });
    this.#at("latest").addEventListener("click", () => {
      this.toEnd();
      this.#at("message").focus();
    });
    new ResizeObserver(() => this.#follow()).observe(scroll);
  }

  /** `model`: `{conversation, connection, mode, isVoiceLive, isMuted, fault, latency, isHearing}`, a value per call. */
  render(model) {
    if (this.#next === null) {
      requestAnimationFrame(() => {
        const newest = this.#next;
        this.#next = null;
        this.#draw(newest);
      });
    }
    this.#next = model;
  }

  toEnd() {
    const scroll = this.#at("scroll");
    scroll.scrollTop = scroll.scrollHeight;
    this.#followsEnd = true;
    this.#at("latest").hidden = true;
  }

  /** What a newcomer is shown has no end to be at: it stays at its beginning, however low the window. */
  #follow() {
    if (this.#followsEnd && this.#at("welcome").hidden) {
      this.toEnd();
    }
  }

  /** Shows the microphone's level to assistive technology, in tenths so that it seldom changes. */
  meter(level) {
    const tenths = String(Math.round(level * 10) * 10);
    const meter = this.#at("meter");
    if (meter.getAttribute("aria-valuenow") !== tenths) {
      meter.setAttribute("aria-valuenow", tenths);
    }
  }

  #draw(model) {
    const before = this.#drawn;
    this.#drawn = model;
    if (before?.conversation !== model.conversation) {
      this.#drawEntries(model.conversation);
      this.#announce(before?.conversation, model.conversation);
      this.#follow();
    }
    if (before?.fault !== model.fault) {
      this.#drawFault(model.fault);
    }
    this.#drawControls(model);
  }

  #drawEntries({ entries, dropped }) {
    this.#at("welcome").hidden = entries.length > 0;
    this.#at("dropped").hidden = dropped === 0;
    const list = this.#at("entries");
    const keys = new Set(entries.map((entry) => entry.key));
    for (const [key, { node }] of this.#nodes) {
      if (!keys.has(key)) {
        node.remove();
        this.#nodes.delete(key);
      }
    }
    let place = list.firstElementChild;
    for (const entry of entries) {
      const node = this.#nodeOf(entry);
      if (node === place) {
        place = place.nextElementSibling;
      } else {
        list.insertBefore(node, place);
      }
    }
  }

  #nodeOf(entry) {
    const known = this.#nodes.get(entry.key);
    if (known?.entry === entry) {
      return known.node;
    }
    const node = known?.node ?? this.#newNode(entry);
    this.#nodes.set(entry.key, { node, entry });
    node.dataset.phase = entry.phase;
    if (known?.entry.how !== entry.how) {
      this.#drawHow(node, entry);
    }
    node.querySelector(".said").textContent = textOf(entry) || placeholderOf(entry);
    const mark = node.querySelector(".mark");
    mark.textContent = entry.mark ?? (entry.phase === "waiting" ? "waiting to be sent" : "");
    mark.hidden = mark.textContent === "";
    return node;
  }

  #newNode(entry) {
    const node = this.#element("li", "entry");
    node.dataset.voice = entry.voice;
    if (entry.voice !== "note") {
      const who = this.#element("p", "who");
      const name = this.#element("span", "name");
      name.textContent = NAMES[entry.voice] ?? "Other";
      who.append(name);
      node.append(who);
    }
    const words = this.#element("p", "words");
    words.dir = "auto";
    words.append(this.#element("span", "said"), " ", this.#element("span", "mark"));
    node.append(words);
    return node;
  }

  /** How a user's words came in, as an icon with its word for those who do not see it. */
  #drawHow(node, entry) {
    const who = node.querySelector(".who");
    if (who === null || entry.voice !== "user") {
      return;
    }
    const word = this.#element("span", "unseen");
    word.textContent = entry.how;
    const icons = entry.how === null ? [] : [word, this.#icon(entry.how === "spoken" ? "microphone" : "keyboard")];
    who.replaceChildren(who.querySelector(".name"), " ", ...icons);
  }

  #announce(before, after) {
    if (before === undefined) {
      return;
    }
    const log = this.#at("announcer");
    for (const entry of finished(before, after)) {
      if (entry.how === "typed" && entry.phase === "final") {
        continue;
      }
      const line = this.#element("p");
      const name = NAMES[entry.voice];
      line.textContent = [name && `${name}:`, textOf(entry), entry.mark && `(${entry.mark})`].filter(Boolean).join(" ");
      log.append(line);
    }
    while (log.childElementCount > ANNOUNCED) {
      log.firstElementChild.remove();
    }
  }

  #drawFault(fault) {
    const alert = this.#at("alert");
    alert.replaceChildren();
    if (fault === null) {
      return;
    }
    const { title, advice, detail, action } = explain(fault);
    const text = this.#element("div", "alert-text");
    for (const [name, words] of [
      ["alert-title", title],
      ["alert-advice", advice],
      ["alert-detail", detail],
    ]) {
      if (words !== "") {
        const line = this.#element("p", name);
        line.textContent = words;
        text.append(line);
      }
    }
    const buttons = this.#element("div", "alert-buttons");
    if (action !== null) {
      buttons.append(this.#button(ACTIONS[action], action));
    }
    buttons.append(this.#button("Dismiss", "dismiss"));
    alert.append(this.#icon("warning"), text, buttons);
  }

  #drawControls(model) {
    const { connection, mode, isVoiceLive, isMuted, conversation } = model;
    this.#at("connection").dataset.state = connection;
    const kind = connection === "live" ? { voice: ", by voice", text: ", in writing" }[mode] : "";
    setText(this.#at("connection-text"), CONNECTION[connection] + kind);

    setText(this.#at("welcome-title"), isVoiceLive && !isMuted ? "Listening." : "Speak, or write.");

    const talk = this.#at("talk");
    const isTrying = mode === "voice" && connection !== "live" && connection !== "idle";
    talk.dataset.does = isVoiceLive ? "hang-up" : isTrying ? "cancel" : "talk";
    const [words, icon] = {
      talk: ["Start talking", "microphone"],
      cancel: ["Cancel", "close"],
      "hang-up": ["Hang up", "hang-up"],
    }[talk.dataset.does];
    setText(this.#at("talk-text"), words);
    this.#setIcon("talk-icon", icon);

    const mute = this.#at("mute");
    mute.hidden = !isVoiceLive;
    mute.setAttribute("aria-pressed", String(isMuted));
    this.#setIcon("mute-icon", isMuted ? "microphone-off" : "microphone");
    this.#at("strings").dataset.state = isVoiceLive ? (isMuted ? "muted" : "live") : "rest";
    setText(this.#at("name-user"), isMuted && isVoiceLive ? "You, muted" : "You");

    this.#at("interrupt").hidden = connection === "idle";
    this.#at("interrupt").setAttribute("aria-disabled", String(!isAnswering(conversation)));
    this.#at("page").dataset.answering = String(isAnswering(conversation));
  }

  #setIcon(id, name) {
    const use = this.#at(id);
    const address = `web/icons.svg#${name}`;
    if (use.getAttribute("href") !== address) {
      use.setAttribute("href", address);
    }
  }

  #icon(name) {
    const svg = this.#document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    const use = this.#document.createElementNS("http://www.w3.org/2000/svg", "use");
    use.setAttribute("href", `web/icons.svg#${name}`);
    svg.append(use);
    return svg;
  }

  #button(words, action) {
    const button = this.#element("button", "plain");
    button.type = "button";
    button.dataset.action = action;
    button.textContent = words;
    return button;
  }

  #element(tag, className = "") {
    const element = this.#document.createElement(tag);
    element.className = className;
    return element;
  }
}

function placeholderOf(entry) {
  if (entry.phase !== "open") {
    return "";
  }
  return entry.voice === "user" ? "listening …" : "…";
}

function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}
