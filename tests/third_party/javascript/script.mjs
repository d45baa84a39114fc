// What is said and asked in every scenario, and how it is waited for: for programs and for pages in a browser alike.

export const RATE_HZ = 24_000;
export const TEXT = 'What is the capital of France?';
export const TOOL = 'How is the weather in Paris?';
export const STORY = 'Please tell me a story.';
export const LISTENS_MS = 2_500;
export const HEARING = { transcription: { model: 'gpt-4o-mini-transcribe', language: 'en' } };
export const WEATHER = {
  type: 'function',
  name: 'get_weather',
  description: 'Tells the weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

const PIECE_MS = 20;
const PIECE_BYTES = (RATE_HZ * 2 * PIECE_MS) / 1_000;

/** What the user says: 24 kHz, 16 bit, mono; whoever plays a scenario sets it. */
export const user = { question: new Uint8Array() };

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function must(claim, otherwise) {
  if (!claim) throw new Error(otherwise);
}

/** Waits for a condition that callbacks bring about; throws what `failures` holds. */
export async function until(condition, what, failures = [], withinMs = 60_000) {
  const deadline = Date.now() + withinMs;
  while (!condition()) {
    must(failures.length === 0, failures.join('; '));
    if (Date.now() > deadline) throw new Error(`waited ${withinMs / 1_000} s for ${what}`);
    await sleep(20);
  }
  must(failures.length === 0, failures.join('; '));
}

export const bytesOf = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

/** One array of many. */
export function joined(parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The loudest of 16-bit samples. */
export function peak(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let loudest = 0;
  for (let at = 0; at + 1 < bytes.length; at += 2) loudest = Math.max(loudest, Math.abs(view.getInt16(at, true)));
  return loudest;
}

const microphones = new Set();

/** Says the question in real time, then silence, until the returned function is called. */
export function speak(send) {
  let at = 0;
  const began = Date.now();
  let sent = 0;
  const timer = setInterval(() => {
    // Timers come late under load; what is due by now is sent at once.
    while (sent * PIECE_MS <= Date.now() - began) {
      const piece = new Uint8Array(PIECE_BYTES);
      piece.set(user.question.subarray(at, at + PIECE_BYTES));
      at += PIECE_BYTES;
      sent += 1;
      send(piece);
    }
  }, PIECE_MS);
  microphones.add(timer);
  return () => clearInterval(timer);
}

/** Ends what a scenario that failed left on. */
export function silence() {
  for (const timer of microphones) clearInterval(timer);
  microphones.clear();
}
