/**
 * How long the last turn took, as the user heard it: from the last sound of the user to the first sound of the answer.
 *
 * Pure: levels, events and times come in as arguments (milliseconds of one clock). Both ends are measured in the page, so
 * the network, the server's wait for the end of the sentence and the playout buffer are all inside the figure.
 */

/** Levels are 0…1 on the meter's scale (`levels.js`); above this there is somebody talking. */
export const AUDIBLE = 0.35;

/** A microphone that was last loud longer ago than this before the server heard the end tells nothing. */
const RECENT_MS = 4_000;

/** The remote track must have been quiet this long for a sound on it to be the start of an answer. */
const QUIET_MS = 300;

export class TurnClock {
  #userLoudAt = -Infinity;
  #answerLoudAt = -Infinity;
  #asked = null;
  #last = null;

  /** The last finished turn: `{kind: "spoken" | "typed", ms, afterServerMs}`, or null before the first. */
  get last() {
    return this.#last;
  }

  userLevel(level, now) {
    if (level > AUDIBLE) {
      this.#userLoudAt = now;
    }
  }

  answerLevel(level, now) {
    if (level <= AUDIBLE) {
      return;
    }
    const wasQuiet = now - this.#answerLoudAt > QUIET_MS;
    this.#answerLoudAt = now;
    if (this.#asked?.kind === "spoken" && wasQuiet) {
      this.#finish(now);
    }
  }

  serverEvent(type, now) {
    if (type === "input_audio_buffer.speech_started") {
      this.#asked = null;
    } else if (type === "input_audio_buffer.speech_stopped") {
      const isRecent = now - this.#userLoudAt < RECENT_MS;
      this.#asked = { kind: "spoken", from: isRecent ? this.#userLoudAt : now, serverAt: now, isAnswered: false };
    } else if (type === "response.created" && this.#asked !== null) {
      this.#asked.isAnswered = true;
    } else if (type === "response.output_text.delta" || type === "response.output_audio_transcript.delta") {
      if (this.#asked?.kind === "typed" && this.#asked.isAnswered) {
        this.#finish(now);
      }
    }
  }

  typed(now) {
    this.#asked = { kind: "typed", from: now, serverAt: now, isAnswered: false };
  }

  /** Forgets the turn under way: what follows would not be its answer (hang-up, interruption, page in background). */
  drop() {
    this.#asked = null;
  }

  #finish(now) {
    const { kind, from, serverAt } = this.#asked;
    this.#asked = null;
    this.#last = { kind, ms: Math.round(now - from), afterServerMs: Math.round(now - serverAt) };
  }
}
