/**
 * The line to the server: one link at a time, opened, watched and opened again.
 *
 * Rules (states, delays, what may pass) are in `connection.js` and `faults.js`; this shell only waits and carries out.
 */

import { START, delayMs, step } from "./connection.js";
import { LinkError, mayPass } from "./faults.js";

/** A link that lived this long counts as a real one, and failures are counted from zero again. */
const STEADY_MS = 5_000;

export class Line {
  #state = START;
  #makeLink = null;
  #link = null;
  #abort = null;
  #retry = null;
  #steady = null;
  #listener;

  /** `listener`: `{changed(stateName), event(json), sound(stream), fault(fault), gaveUp(fault)}`. */
  constructor(listener) {
    this.#listener = listener;
  }

  get state() {
    return this.#state.name;
  }

  get isLive() {
    return this.#state.name === "live";
  }

  /** Opens a link made by `makeLink(linkListener)`, in place of the present one, and keeps it open. */
  dial(makeLink) {
    this.#drop();
    this.#makeLink = makeLink;
    this.#step("dial");
    this.#attempt();
  }

  /** Ends the link and every attempt to get one. */
  stop() {
    this.#drop();
    this.#makeLink = null;
    this.#step("stop");
  }

  /** As `stop`, but what the link leads to is not told that it is the end: the page may be back in a moment. */
  leave() {
    this.#link?.leave();
    this.stop();
  }

  /** Tries now what a timer would try later. Harmless at any other time. */
  hurry() {
    if (this.#retry !== null) {
      clearTimeout(this.#retry);
      this.#retry = null;
      this.#attempt();
    }
  }

  /** Returns whether the event went out. */
  send(event) {
    return this.isLive && this.#link !== null && this.#link.send(event);
  }

  async #attempt() {
    const abort = new AbortController();
    this.#abort = abort;
    const link = this.#makeLink({
      event: (json) => this.#link === link && this.#listener.event(json),
      sound: (stream) => this.#link === link && this.#listener.sound(stream),
      lost: (fault) => this.#link === link && this.#lost(fault),
    });
    this.#link = link;
    try {
      await link.open(abort.signal);
    } catch (error) {
      if (abort.signal.aborted) {
        return;
      }
      if (!(error instanceof LinkError)) {
        this.stop();
        throw error;
      }
      this.#failed(error.fault);
      return;
    }
    if (abort.signal.aborted) {
      link.close();
      return;
    }
    this.#step("opened");
    this.#steady = setTimeout(() => this.#step("steady"), STEADY_MS);
  }

  #lost(fault) {
    this.#drop();
    if (mayPass(fault)) {
      this.#step("lost");
      this.#listener.fault(fault);
      this.#later(fault);
    } else {
      this.#giveUp(fault);
    }
  }

  #failed(fault) {
    this.#drop();
    if (mayPass(fault)) {
      this.#step("failed");
      this.#listener.fault(fault);
      this.#later(fault);
    } else {
      this.#giveUp(fault);
    }
  }

  #giveUp(fault) {
    this.#step("refused");
    this.#listener.gaveUp(fault);
  }

  #later(fault) {
    const delay = delayMs(this.#state.attempts, Math.random(), fault.retryAfterMs);
    this.#retry = setTimeout(() => {
      this.#retry = null;
      this.#attempt();
    }, delay);
  }

  #drop() {
    clearTimeout(this.#retry);
    clearTimeout(this.#steady);
    this.#retry = this.#steady = null;
    this.#abort?.abort();
    this.#abort = null;
    this.#link?.close();
    this.#link = null;
  }

  #step(event) {
    this.#state = step(this.#state, event);
    this.#listener.changed(this.#state.name);
  }
}
