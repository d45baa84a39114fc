/**
 * Reads both levels while the microphone is open: steadily for whoever measures, once a frame for the strings.
 */

import { Strings } from "./strings.js";

/** How often levels are read; the analyser's window is about as long. */
const SAMPLE_MS = 25;

export class Meters {
  #read;
  #told;
  #strings;
  #sampling = null;
  #frame = null;

  /** `read()` gives `{user, answer}` in 0…1; `told(levels, now)` gets them every 25 ms while the meters run. */
  constructor(canvas, read, told) {
    this.#read = read;
    this.#told = told;
    this.#strings = new Strings(canvas, matchMedia("(prefers-reduced-motion: reduce)"));
    addEventListener("resize", () => this.#rest());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#rest());
    this.#rest();
  }

  start() {
    if (this.#sampling === null) {
      this.#sampling = setInterval(() => this.#told(this.#read(), performance.now()), SAMPLE_MS);
      this.#swing(0);
    }
  }

  stop() {
    clearInterval(this.#sampling);
    cancelAnimationFrame(this.#frame);
    this.#sampling = null;
    this.#rest();
  }

  #swing(now) {
    this.#strings.draw(this.#read(), now);
    this.#frame = requestAnimationFrame((next) => this.#swing(next));
  }

  #rest() {
    if (this.#sampling === null) {
      this.#strings.rest();
    }
  }
}
