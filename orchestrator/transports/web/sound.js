/**
 * Microphone in, answer out: opened, muted, silenced and given back here; how it travels is the call's business.
 */

import { fromMicrophone } from "./faults.js";
import { Levels } from "./levels.js";

/** A cut that the server never confirms does not silence the page for longer than this. */
const LONGEST_SILENCE_MS = 1_500;

/** After the server said that its playout is empty, what the browser still holds is over within this time. */
const TAIL_MS = 150;

export class Sound {
  #element;
  #listener;
  #levels = new Levels();
  #microphone = null;
  #isMuted = false;
  #silence = null;

  /** `element` plays the answer. `listener`: `{fault(fault)}`, for what goes wrong later. */
  constructor(element, listener) {
    this.#element = element;
    this.#listener = listener;
  }

  get microphone() {
    return this.#microphone;
  }

  get isMuted() {
    return this.#isMuted;
  }

  /** How loud the two sides are now: `{user, answer}`, 0…1. */
  get levels() {
    return { user: this.#levels.read("user"), answer: this.#levels.read("answer") };
  }

  /** Returns null with the microphone open, or the fault that kept it shut. Call it from a user's gesture. */
  async open() {
    this.#levels.start();
    if (!this.#microphone?.active) {
      const fault = await this.#openMicrophone();
      if (fault !== null) {
        return fault;
      }
    }
    this.#levels.attach("user", this.#microphone);
    return null;
  }

  mute(isMuted) {
    this.#isMuted = isMuted;
    for (const track of this.#microphone?.getAudioTracks() ?? []) {
      track.enabled = !isMuted;
    }
  }

  async play(stream = this.#element.srcObject) {
    this.#levels.attach("answer", stream);
    this.#element.srcObject = stream;
    this.unquiet();
    try {
      await this.#element.play();
    } catch (error) {
      // AbortError: the stream was replaced by a newer one meanwhile.
      if (error.name !== "AbortError") {
        this.#listener.fault({ kind: "sound-blocked", detail: error.message });
      }
    }
  }

  /** Takes the answer's sound away; the microphone stays. */
  unplug() {
    this.#levels.detach("answer");
    this.#element.srcObject = null;
    this.unquiet();
  }

  /** Silences the answer here at once, while the server's own stop is on its way. */
  quiet(forMs = LONGEST_SILENCE_MS) {
    clearTimeout(this.#silence);
    this.#element.muted = true;
    this.#silence = setTimeout(() => this.unquiet(), forMs);
  }

  /** The server's playout is empty: a silence of ours ends as soon as the browser's own buffer is. */
  drained() {
    if (this.#silence !== null) {
      this.quiet(TAIL_MS);
    }
  }

  unquiet() {
    clearTimeout(this.#silence);
    this.#silence = null;
    this.#element.muted = false;
  }

  /** Gives microphone and audio hardware back. */
  close() {
    for (const track of this.#microphone?.getTracks() ?? []) {
      track.stop();
    }
    this.#microphone = null;
    this.#isMuted = false;
    this.unplug();
    this.#levels.stop();
  }

  async #openMicrophone() {
    if (navigator.mediaDevices?.getUserMedia === undefined) {
      return { kind: "insecure-page" };
    }
    if (globalThis.RTCPeerConnection === undefined) {
      return { kind: "no-webrtc" };
    }
    let microphone;
    try {
      const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };
      microphone = await navigator.mediaDevices.getUserMedia({ audio });
    } catch (error) {
      return fromMicrophone(error);
    }
    this.#microphone = microphone;
    for (const track of microphone.getAudioTracks()) {
      track.addEventListener("ended", () => {
        if (this.#microphone === microphone) {
          this.#listener.fault({ kind: "microphone-lost" });
        }
      });
    }
    return null;
  }
}
