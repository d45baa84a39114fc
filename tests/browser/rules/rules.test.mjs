import assert from "node:assert/strict";
import { test } from "node:test";

import { PATIENCE, START, STATES, delayMs, step } from "../../../orchestrator/transports/web/connection.js";
import { CAPACITY, EventLog, LONGEST, summary } from "../../../orchestrator/transports/web/eventlog.js";
import {
  ACTIONS,
  explain,
  fromClose,
  fromMicrophone,
  fromStatus,
  leavesText,
  mayPass,
} from "../../../orchestrator/transports/web/faults.js";
import { TurnClock } from "../../../orchestrator/transports/web/latency.js";
import { levelOf } from "../../../orchestrator/transports/web/levels.js";
import { NOWHERE, after, isKnown, ticketOf } from "../../../orchestrator/transports/web/place.js";

const run = (...events) => events.reduce(step, START);

test("a lost link is reconnecting first and away after some failures, and both come back", () => {
  assert.equal(run("dial", "opened", "steady", "lost").name, "reconnecting");
  const failures = Array(PATIENCE).fill("failed");
  assert.equal(run("dial", "opened", "steady", "lost", ...failures).name, "away");
  assert.equal(run("dial", "opened", "steady", "lost", ...failures, "opened").name, "live");
});

test("a first attempt that fails is away at once", () => {
  assert.equal(run("dial", "failed").name, "away");
});

test("a server that accepts and breaks off at once is asked less and less often", () => {
  let state = run("dial");
  for (let round = 0; round < 5; round += 1) {
    state = ["opened", "lost", "failed"].reduce(step, state);
  }
  assert.equal(state.attempts, 5);
  assert.equal(["opened", "steady"].reduce(step, state).attempts, 0);
});

test("every state can be stopped and dialled again", () => {
  const paths = { idle: [], connecting: ["dial"], live: ["dial", "opened"], reconnecting: ["dial", "opened", "lost"], away: ["dial", "failed"] };
  assert.deepEqual(Object.keys(paths), STATES);
  for (const [name, path] of Object.entries(paths)) {
    assert.equal(run(...path).name, name);
    assert.equal(step(run(...path), "stop").name, "idle");
    assert.equal(step(run(...path), "dial").name, "connecting");
  }
});

test("an event that a state does not know is a fault of the page and is told", () => {
  assert.throws(() => step(START, "opened"), /no transition from idle on opened/);
});

test("waits grow to a bound, are never nothing, and are spread by chance", () => {
  for (let attempts = 0; attempts < 60; attempts += 1) {
    const [least, most] = [delayMs(attempts, 0), delayMs(attempts, 0.999999)];
    assert.ok(least >= 250 && most <= 20_000 && most >= 1.9 * least, `${attempts}: ${least} to ${most}`);
    assert.ok(delayMs(attempts + 1, 0.5) >= delayMs(attempts, 0.5));
  }
});

test("a server that names a time is not asked earlier", () => {
  assert.ok(delayMs(0, 0, 8_000) >= 8_000);
  assert.ok(delayMs(20, 0.5, 1_000) > 1_000);
});

test("every fault has words, and its button exists", () => {
  const kinds = [
    ...["NotFoundError", "NotAllowedError", "NotReadableError", "TypeError"].map((name) => fromMicrophone({ name }).kind),
    ...[401, 403, 404, 429, 500, 503].map((status) => fromStatus(status, 0, "").kind),
    ...[1000, 1001, 1006, 1008, 1011, 1013].map((code) => fromClose(code, "", true).kind),
    ...["insecure-page", "no-webrtc", "call-failed", "call-lost", "microphone-lost", "sound-blocked"],
    ...["request-refused", "outbox-full", "page-fault"],
  ];
  const unknown = explain({ kind: "page-fault" }).title;
  for (const kind of kinds) {
    const { title, advice, action } = explain({ kind });
    assert.ok(title.length > 5 && advice.length > 10, kind);
    assert.ok(action === null || action in ACTIONS, kind);
    assert.ok(kind === "page-fault" || title !== unknown, `${kind} has no words of its own`);
  }
});

test("microphones that are absent, forbidden and busy are told apart", () => {
  assert.equal(fromMicrophone({ name: "NotFoundError" }).kind, "microphone-missing");
  assert.equal(fromMicrophone({ name: "NotAllowedError" }).kind, "microphone-denied");
  assert.equal(fromMicrophone({ name: "NotReadableError" }).kind, "microphone-busy");
});

test("only what may pass by itself is tried again by itself", () => {
  const passing = { 429: true, 500: true, 503: true, 401: false, 403: false, 404: false };
  for (const [status, passes] of Object.entries(passing)) {
    assert.equal(mayPass(fromStatus(Number(status), 0, "")), passes, status);
  }
  assert.equal(mayPass(fromMicrophone({ name: "NotFoundError" })), false);
});

test("whatever stops only the voice leaves writing", () => {
  for (const kind of ["microphone-missing", "microphone-denied", "no-webrtc", "insecure-page", "call-failed"]) {
    assert.ok(leavesText({ kind }), kind);
  }
  assert.ok(!leavesText({ kind: "key-needed" }));
});

test("the turn's latency runs from the user's last sound to the answer's first", () => {
  const clock = new TurnClock();
  for (let now = 0; now <= 1_000; now += 25) {
    clock.userLevel(0.8, now);
  }
  clock.userLevel(0.1, 1_500);
  clock.serverEvent("input_audio_buffer.speech_stopped", 1_600);
  clock.answerLevel(0.0, 1_900);
  assert.equal(clock.last, null);
  clock.answerLevel(0.7, 2_250);
  clock.answerLevel(0.7, 2_400);
  assert.deepEqual(clock.last, { kind: "spoken", ms: 1_250, afterServerMs: 650 });
});

test("the rest of an interrupted answer is not taken for the start of the next", () => {
  const clock = new TurnClock();
  clock.answerLevel(0.7, 950);
  clock.userLevel(0.8, 980);
  clock.serverEvent("input_audio_buffer.speech_stopped", 1_000);
  clock.answerLevel(0.7, 1_020);
  assert.equal(clock.last, null);
  clock.answerLevel(0.7, 2_000);
  assert.equal(clock.last.ms, 1_020);
});

test("a typed turn ends with the first words of its own answer", () => {
  const clock = new TurnClock();
  clock.typed(100);
  clock.serverEvent("response.output_text.delta", 120);
  assert.equal(clock.last, null, "that was still the old answer");
  clock.serverEvent("response.created", 150);
  clock.serverEvent("response.output_text.delta", 400);
  assert.deepEqual(clock.last, { kind: "typed", ms: 300, afterServerMs: 300 });
});

test("a dropped turn is not measured", () => {
  const clock = new TurnClock();
  clock.serverEvent("input_audio_buffer.speech_stopped", 1_000);
  clock.drop();
  clock.answerLevel(0.9, 2_000);
  assert.equal(clock.last, null);
});

test("levels are 0 for silence, 1 for full scale and linear in decibels between", () => {
  const tone = (amplitude) => Float32Array.from({ length: 4_800 }, (_, n) => amplitude * Math.SQRT2 * Math.sin((2 * Math.PI * n) / 48));
  assert.equal(levelOf(new Float32Array(100)), 0);
  assert.equal(levelOf(new Float32Array(100).fill(1)), 1);
  assert.ok(Math.abs(levelOf(tone(0.0316228)) - 0.5) < 0.001);
});

test("the log of events is bounded in number and in length", () => {
  const log = new EventLog();
  for (let number = 0; number < 3 * CAPACITY; number += 1) {
    log.add("in", { type: "x", event_id: "e", text: "y".repeat(10 * LONGEST) }, number);
  }
  assert.equal(log.rows.length, CAPACITY);
  assert.equal(log.rows.at(-1).number, 3 * CAPACITY);
  assert.ok(log.rows.every((row) => row.text.length <= LONGEST));
});

test("a paused log keeps still, counts what passes, and goes on afterwards", () => {
  const log = new EventLog();
  log.add("in", { type: "a" }, 0);
  log.pause(true);
  const { rows } = log;
  log.add("in", { type: "b" }, 0);
  assert.equal(log.rows, rows);
  assert.equal(log.skipped, 1);
  log.pause(false);
  log.add("out", { type: "c" }, 0);
  assert.deepEqual(log.rows.map((row) => row.type), ["a", "c"]);
});

test("a log line leaves out ids, sound and secrets, and keeps the rest", () => {
  const event = { type: "t", event_id: "e1", audio: "QUJD", session: { audio: { speed: 1 }, chorale: { secret: "s" } } };
  assert.equal(summary(event), '{"audio":"(sound)","session":{"audio":{"speed":1},"chorale":{"secret":"(secret)"}}}');
  assert.equal(summary({ type: "t", event_id: "e" }), "");
});

const created = (id) => ({ type: "session.created", event_id: `event_${id.slice(-12)}_p1`, session: { id } });
const updated = (id, secret) => ({
  type: "session.updated",
  event_id: `event_${id.slice(-12)}_1`,
  session: { id, chorale: { secret } },
});
const HERE = "sess_0123456789abcdefghij";

test("a page knows where it stands: its session, the secret, the newest number", () => {
  let place = NOWHERE;
  assert.equal(ticketOf(place), null);
  place = after(place, created(HERE));
  assert.equal(ticketOf(place), null, "nothing to show yet");
  place = after(place, updated(HERE, "rs_x"));
  assert.deepEqual(ticketOf(place), { sessionId: HERE, secret: "rs_x", last: 1 });
  place = after(place, { type: "t", event_id: "event_89abcdefghij_37" });
  assert.equal(ticketOf(place).last, 37);
  place = after(place, { type: "t", event_id: "event_89abcdefghij_12" });
  assert.equal(ticketOf(place).last, 37, "it never goes back");
});

test("ids of private messages, of other sessions and of no form move nothing", () => {
  const place = after(after(NOWHERE, created(HERE)), updated(HERE, "rs_x"));
  for (const id of ["event_89abcdefghij_p9", "event_0000000000zz_9", "9", 9, undefined, "event_89abcdefghij_", "event_89abcdefghij_9x", "event_89abcdefghij_٣"]) {
    assert.deepEqual(after(place, { type: "t", event_id: id }), place);
    assert.equal(isKnown(place, { type: "t", event_id: id }), false);
  }
});

test("a numbered event counts once, and a session's secret is not shown to another", () => {
  const place = after(after(NOWHERE, created(HERE)), updated(HERE, "rs_x"));
  assert.equal(isKnown(place, { type: "t", event_id: "event_89abcdefghij_1" }), true);
  assert.equal(isKnown(place, { type: "t", event_id: "event_89abcdefghij_2" }), false);
  assert.deepEqual(after(place, created(HERE)), place, "the same session goes on");
  const other = after(place, created("sess_000000000000000000zz"));
  assert.equal(ticketOf(other), null);
  assert.equal(isKnown(other, { type: "t", event_id: "event_0000000000zz_1" }), false);
});
