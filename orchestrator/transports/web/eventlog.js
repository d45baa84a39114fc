/**
 * The last events on the wire, for the details drawer: bounded in number and in length, and pausable.
 *
 * Pure. A paused log takes nothing in, so that what is being read stays; it says how many it let pass.
 */

export const CAPACITY = 200;
export const LONGEST = 600;

export class EventLog {
  #rows = [];
  #paused = false;
  #skipped = 0;
  #count = 0;

  /** Rows, oldest first: `{number, at, direction: "in" | "out", type, text}`. */
  get rows() {
    return this.#rows;
  }

  get paused() {
    return this.#paused;
  }

  get skipped() {
    return this.#skipped;
  }

  add(direction, event, now) {
    if (this.#paused) {
      this.#skipped += 1;
      return;
    }
    this.#count += 1;
    const row = { number: this.#count, at: now, direction, type: String(event.type), text: summary(event) };
    this.#rows = [...this.#rows.slice(-(CAPACITY - 1)), row];
  }

  pause(isPaused) {
    this.#paused = isPaused;
    this.#skipped = 0;
  }

  clear() {
    this.#rows = [];
    this.#skipped = 0;
  }
}

/** Fields that are named but not shown: base64 sound, and what lets others into the session. */
const NOT_SHOWN = { audio: "(sound)", secret: "(secret)" };

/** An event's fields as one line of JSON, at most `LONGEST` characters. */
export function summary(event) {
  const text = JSON.stringify(event, function shown(key, value) {
    if (this === event && (key === "type" || key === "event_id")) {
      return undefined;
    }
    return typeof value === "string" && Object.hasOwn(NOT_SHOWN, key) ? NOT_SHOWN[key] : value;
  });
  const short = text === "{}" ? "" : text;
  return short.length <= LONGEST ? short : `${short.slice(0, LONGEST - 1)}…`;
}
