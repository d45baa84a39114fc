// What the JavaScript clients have in common; the same task file and report as `stage.py`.

import { appendFileSync, readFileSync } from 'node:fs';

export const RATE_HZ = 24_000;
export const TEXT = 'What is the capital of France?';
export const TOOL = 'How is the weather in Paris?';
export const STORY = 'Please tell me a story.';
export const LISTENS_MS = 2_500;

const task = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const PIECE_MS = 20;
const PIECE_BYTES = (RATE_HZ * 2 * PIECE_MS) / 1_000;

/** The samples of the spoken question: a WAV file's data chunk. */
const question = (() => {
  const wav = readFileSync(task.question);
  const at = wav.indexOf('data') + 8;
  return wav.subarray(at);
})();

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

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

export function must(claim, otherwise) {
  if (!claim) throw new Error(otherwise);
}

/** The loudest of 16-bit samples. */
export function peak(buffer) {
  let loudest = 0;
  for (let at = 0; at + 1 < buffer.length; at += 2) loudest = Math.max(loudest, Math.abs(buffer.readInt16LE(at)));
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
      const piece = Buffer.alloc(PIECE_BYTES);
      if (at < question.length) question.copy(piece, 0, at, at + PIECE_BYTES);
      at += PIECE_BYTES;
      sent += 1;
      send(piece);
    }
  }, PIECE_MS);
  microphones.add(timer);
  return () => clearInterval(timer);
}

/** The version of an installed package. */
export function version(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')).version;
}

/** Runs the scenarios that the task names and reports one line about each. */
export async function play(packages, scenarios) {
  const versions = Object.fromEntries(packages.map((name) => [name, version(name)]));
  versions.node = process.versions.node;
  const uncaught = [];
  process.on('uncaughtException', (error) => uncaught.push(`uncaught: ${error.message}`));
  process.on('unhandledRejection', (error) => uncaught.push(`unhandled: ${error?.message ?? error}`));
  for (const [scenario, url] of Object.entries(task.scenarios)) {
    for (const timer of microphones) clearInterval(timer);
    uncaught.length = 0;
    const began = Date.now();
    let ok = true;
    let detail;
    try {
      const limit = sleep(task.limit_s * 1_000).then(() => { throw new Error('took too long'); });
      limit.catch(() => {});
      detail = await Promise.race([scenarios[scenario](url), limit]);
      must(uncaught.length === 0, uncaught.join('; '));
    } catch (error) {
      ok = false;
      detail = [`${error.message}`, ...uncaught].join('; ').slice(0, 600);
    }
    const seconds = Math.round((Date.now() - began) / 100) / 10;
    appendFileSync(task.report, `${JSON.stringify({ scenario, ok, detail, seconds, versions })}\n`);
  }
  process.exit(0);
}
