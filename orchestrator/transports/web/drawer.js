/**
 * The details drawer: session, latency of the last turn, access key, events on the wire. Nothing in it is drawn while it
 * is closed.
 */

const REFRESH_MS = 250;

/** Below this width the drawer covers the page, which is then out of reach for keyboard and screen reader. */
const COVERS = "(max-width: 62rem)";

export class Drawer {
  #at;
  #document;
  #log;
  #facts;
  #media;
  #shown = null;
  #timer = null;

  /** `facts()` gives `{sessionId, linkKind, latency}`; `log` is an `EventLog`. */
  constructor(document, log, facts) {
    this.#document = document;
    this.#at = (id) => document.getElementById(id);
    this.#log = log;
    this.#facts = facts;
    this.#at("details-toggle").addEventListener("click", () => (this.isOpen ? this.close() : this.open()));
    this.#at("details-close").addEventListener("click", () => this.close());
    this.#at("events-pause").addEventListener("click", () => {
      log.pause(!log.paused);
      this.#draw();
    });
    this.#at("events-clear").addEventListener("click", () => {
      log.clear();
      this.#draw();
    });
    this.#media = document.defaultView.matchMedia(COVERS);
    this.#media.addEventListener("change", () => this.#cover());
  }

  get isOpen() {
    return !this.#at("details").hidden;
  }

  open(focusId = "details-close") {
    this.#at("details").hidden = false;
    this.#at("details-toggle").setAttribute("aria-expanded", "true");
    this.#document.body.dataset.details = "open";
    this.#cover();
    this.#draw();
    this.#timer ??= setInterval(() => this.#draw(), REFRESH_MS);
    this.#at(focusId).focus();
  }

  close() {
    clearInterval(this.#timer);
    this.#timer = null;
    this.#at("details").hidden = true;
    this.#at("details-toggle").setAttribute("aria-expanded", "false");
    delete this.#document.body.dataset.details;
    this.#cover();
    this.#at("details-toggle").focus();
  }

  #cover() {
    this.#at("page").inert = this.isOpen && this.#media.matches;
  }

  #draw() {
    const { sessionId, linkKind, latency } = this.#facts();
    this.#set("session-id", sessionId ?? "none yet");
    this.#set("link-kind", linkKind);
    this.#set("latency", latencyText(latency));
    this.#at("events-pause").setAttribute("aria-pressed", String(this.#log.paused));
    const skipped = this.#log.skipped === 0 ? "" : ` Paused; ${this.#log.skipped} passed by.`;
    this.#set("events-note", `The last 200 events; older ones leave.${skipped}`);
    this.#drawRows();
  }

  /** Rows leave at the front and come at the end, so only the difference is touched. */
  #drawRows() {
    const { rows } = this.#log;
    if (rows === this.#shown) {
      return;
    }
    this.#shown = rows;
    const list = this.#at("events");
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    const first = rows.length === 0 ? Infinity : rows[0].number;
    while (list.firstElementChild !== null && Number(list.firstElementChild.dataset.number) < first) {
      list.firstElementChild.remove();
    }
    const last = Number(list.lastElementChild?.dataset.number ?? 0);
    for (const row of rows) {
      if (row.number > last) {
        list.append(this.#rowOf(row));
      }
    }
    if (atEnd) {
      list.scrollTop = list.scrollHeight;
    }
  }

  #rowOf(row) {
    const item = this.#document.createElement("li");
    item.dataset.number = String(row.number);
    item.dataset.direction = row.direction;
    for (const [name, text] of [
      ["event-at", new Date(row.at).toTimeString().slice(0, 8)],
      ["event-direction", row.direction === "in" ? "←" : "→"],
      ["event-type", row.type],
      ["event-text", row.text],
    ]) {
      const part = this.#document.createElement("span");
      part.className = name;
      part.textContent = text;
      item.append(part, " ");
    }
    return item;
  }

  #set(id, text) {
    const element = this.#at(id);
    if (element.textContent !== text) {
      element.textContent = text;
    }
  }
}

/** The last turn's figure in words. */
export function latencyText(latency) {
  if (latency === null) {
    return "not measured yet";
  }
  const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;
  if (latency.kind === "typed") {
    return `${seconds(latency.ms)} from sending to the first words`;
  }
  return `${seconds(latency.ms)} from your last sound to the first of the answer (${seconds(latency.afterServerMs)} after the server heard the end)`;
}
