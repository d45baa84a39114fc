/**
 * How loud the microphone and the answer are, read from the browser's own analysers.
 *
 * Levels are 0…1, linear in decibels from −60 dBFS to 0 dBFS.
 */

const FLOOR_DB = -60;
const WINDOW = 1024;

/** Root mean square of samples in −1…1 → level. */
export function levelOf(samples) {
  let sum = 0;
  for (const sample of samples) {
    sum += sample * sample;
  }
  const db = 10 * Math.log10(sum / samples.length + 1e-12);
  return Math.min(1, Math.max(0, 1 - db / FLOOR_DB));
}

export class Levels {
  #context = null;
  #meters = new Map();
  #samples = new Float32Array(WINDOW);

  /** Call this from a user's gesture: browsers start no sound otherwise. */
  start() {
    this.#context ??= new AudioContext();
    this.#context.resume();
  }

  /** Measures `stream` under `name` from now on, instead of what was measured there. */
  attach(name, stream) {
    this.detach(name);
    if (this.#context === null) {
      return;
    }
    const source = this.#context.createMediaStreamSource(stream);
    const analyser = this.#context.createAnalyser();
    analyser.fftSize = WINDOW;
    source.connect(analyser);
    this.#meters.set(name, { source, analyser });
  }

  detach(name) {
    this.#meters.get(name)?.source.disconnect();
    this.#meters.delete(name);
  }

  /** The level of the last 21 ms; 0 where nothing is attached. */
  read(name) {
    const meter = this.#meters.get(name);
    if (meter === undefined) {
      return 0;
    }
    meter.analyser.getFloatTimeDomainData(this.#samples);
    return levelOf(this.#samples);
  }

  /** Gives the audio hardware back. */
  async stop() {
    for (const name of [...this.#meters.keys()]) {
      this.detach(name);
    }
    const context = this.#context;
    this.#context = null;
    await context?.close();
  }
}
