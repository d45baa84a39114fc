import assert from "node:assert/strict";
import { test } from "node:test";

import {
  EMPTY,
  LIMITS,
  finished,
  isAnswering,
  missed,
  reduce,
  textOf,
  waiting,
} from "../../../orchestrator/transports/web/conversation.js";

const CREATED = { type: "session.created", session: { id: "sess_1" } };

function after(events, state = EMPTY) {
  return events.reduce((now, event, index) => reduce(now, event, index), state);
}

function shown(state) {
  return state.entries.map((entry) => `${entry.voice}/${entry.phase}: ${textOf(entry)}${entry.mark ? ` [${entry.mark}]` : ""}`);
}

function added(id, role, content, previous_item_id, status = "completed") {
  return { type: "conversation.item.added", item: { id, type: "message", role, content, status }, previous_item_id };
}

function done(id, role, content, status = "completed") {
  return { type: "conversation.item.done", item: { id, type: "message", role, content, status }, previous_item_id: null };
}

const speech = (transcript = null) => [{ type: "input_audio", transcript }];
const heard = (item_id, transcript) => ({
  type: "conversation.item.input_audio_transcription.completed",
  item_id,
  content_index: 0,
  transcript,
});
const partial = (item_id, delta) => ({
  type: "conversation.item.input_audio_transcription.delta",
  item_id,
  content_index: 0,
  delta,
});
const said = (item_id, delta, response_id = "resp_1") => ({
  type: "response.output_audio_transcript.delta",
  response_id,
  item_id,
  output_index: 0,
  content_index: 0,
  delta,
});
const began = (item_id, response_id = "resp_1") => ({
  type: "response.output_item.added",
  response_id,
  output_index: 0,
  item: { id: item_id, type: "message", role: "assistant", status: "in_progress", content: [] },
});
const created = (id = "resp_1") => ({ type: "response.created", response: { id, status: "in_progress" } });
const over = (id, status, status_details = null) => ({ type: "response.done", response: { id, status, status_details } });

const SPOKEN_TURN = [
  CREATED,
  { type: "input_audio_buffer.speech_started", item_id: "u1", audio_start_ms: 0 },
  partial("u1", "what time "),
  { type: "input_audio_buffer.speech_stopped", item_id: "u1", audio_end_ms: 900 },
  added("u1", "user", speech(), null),
  done("u1", "user", speech()),
  created(),
  began("a1"),
  added("a1", "assistant", [], "u1", "in_progress"),
];

test("a spoken turn shows its partial words, then its final ones", () => {
  const state = after(SPOKEN_TURN);
  assert.deepEqual(shown(state), ["user/open: what time ", "assistant/open: "]);
  assert.deepEqual(shown(after([heard("u1", "What time is it?")], state))[0], "user/final: What time is it?");
});

test("words that were recognised before the item was added are kept with it", () => {
  const state = after([CREATED, partial("u1", "hello"), added("u1", "user", speech(), null)]);
  assert.deepEqual(shown(state), ["user/open: hello"]);
});

test("an answer grows by its deltas and ends with what its item says", () => {
  const open = after([...SPOKEN_TURN, said("a1", "It is "), said("a1", "nine")]);
  assert.equal(shown(open)[1], "assistant/open: It is nine");
  const content = [{ type: "output_audio", transcript: "It is nine." }];
  const state = after([done("a1", "assistant", content), over("resp_1", "completed")], open);
  assert.equal(shown(state)[1], "assistant/final: It is nine.");
});

test("items stand where previous_item_id puts them, whatever order their events came in", () => {
  const state = after([
    CREATED,
    added("u1", "user", [{ type: "input_text", text: "one" }], null),
    added("u3", "user", [{ type: "input_text", text: "three" }], "u1"),
    added("u2", "user", [{ type: "input_text", text: "two" }], "u1"),
    added("u0", "user", [{ type: "input_text", text: "zero" }], null),
    added("u4", "user", [{ type: "input_text", text: "four" }], "nobody knows this one"),
  ]);
  assert.deepEqual(state.entries.map(textOf), ["zero", "one", "two", "three", "four"]);
});

test("a speaker who starts during an answer stands behind that answer", () => {
  const state = after([
    ...SPOKEN_TURN.slice(0, 7),
    { type: "input_audio_buffer.speech_started", item_id: "u2", audio_start_ms: 2000 },
    began("a1"),
    added("a1", "assistant", [], "u1", "in_progress"),
    added("u2", "user", speech(), "a1"),
  ]);
  assert.deepEqual(state.entries.map((entry) => entry.id), ["u1", "a1", "u2"]);
});

test("sound that began but never became an item disappears when the next speech begins", () => {
  const state = after([
    CREATED,
    { type: "input_audio_buffer.speech_started", item_id: "noise", audio_start_ms: 0 },
    { type: "input_audio_buffer.speech_started", item_id: "u1", audio_start_ms: 0 },
  ]);
  assert.deepEqual(state.entries.map((entry) => entry.id), ["u1"]);
});

test("an interrupted answer is marked, and shows what was heard once the server says it", () => {
  const cut = after([
    ...SPOKEN_TURN,
    said("a1", "It is nine and the kettle is on."),
    { type: "conversation.item.truncated", item_id: "a1", content_index: 0, audio_end_ms: 700 },
  ]);
  assert.equal(shown(cut)[1], "assistant/cut: It is nine and the kettle is on. [interrupted]");
  const item = { id: "a1", type: "message", role: "assistant", content: [{ type: "output_audio", transcript: "It is" }] };
  const full = [{ type: "output_audio", transcript: "It is nine and the kettle is on." }];
  const state = after([{ type: "conversation.item.retrieved", item }, done("a1", "assistant", full, "incomplete")], cut);
  assert.equal(shown(state)[1], "assistant/cut: It is [interrupted]");
});

test("a cancelled response cuts its open answer; one that said nothing leaves no trace", () => {
  const cancelled = over("resp_1", "cancelled", { type: "cancelled", reason: "turn_detected" });
  assert.equal(shown(after([...SPOKEN_TURN, said("a1", "It is"), cancelled]))[1], "assistant/cut: It is [interrupted]");
  assert.equal(after([...SPOKEN_TURN, cancelled]).entries.length, 1);
});

test("an answer that was finished keeps its end when a later response is cancelled", () => {
  const state = after([
    ...SPOKEN_TURN,
    said("a1", "Nine."),
    done("a1", "assistant", [{ type: "output_audio", transcript: "Nine." }]),
    over("resp_1", "completed"),
    created("resp_2"),
    over("resp_2", "cancelled"),
  ]);
  assert.equal(shown(state)[1], "assistant/final: Nine.");
});

test("a failed response says why, once, in the conversation", () => {
  const error = { type: "server_error", message: "the reply worker is gone" };
  const state = after([...SPOKEN_TURN, over("resp_1", "failed", { type: "failed", error })]);
  assert.equal(shown(state).at(-1), "note/failed: That could not be answered: the reply worker is gone");
  assert.equal(isAnswering(state), false);
});

test("a transcript without words, or without success, ends the entry and says so", () => {
  assert.equal(shown(after([heard("u1", " ")], after(SPOKEN_TURN)))[0], "user/final:   [no words understood]");
  const failed = {
    type: "conversation.item.input_audio_transcription.failed",
    item_id: "u1",
    content_index: 0,
    error: { type: "server_error", message: "too busy" },
  };
  const state = after([failed], after(SPOKEN_TURN.filter((event) => !event.type.endsWith(".delta"))));
  assert.equal(shown(state)[0], "user/failed:  [not understood: too busy]");
});

test("a typed message waits until the server confirms it, and keeps its place among the others", () => {
  const typed = after([CREATED, { type: "page.typed", id: "t1", text: "hello" }]);
  assert.deepEqual(waiting(typed).map((entry) => entry.id), ["t1"]);
  const state = after([added("t1", "user", [{ type: "input_text", text: "hello" }], null)], typed);
  assert.deepEqual(shown(state), ["user/final: hello"]);
  assert.deepEqual(waiting(state), []);
  assert.equal(state.entries[0].how, "typed");
});

test("a typed message that the server refuses is marked with the reason", () => {
  const error = { type: "invalid_request_error", code: "invalid_value", message: "too long", event_id: "t1" };
  const state = after([CREATED, { type: "page.typed", id: "t1", text: "hello" }, { type: "error", error }]);
  assert.deepEqual(shown(state), ["user/failed: hello [not sent: too long]"]);
});

test("a message that was sent twice, since nobody knew whether it had arrived, is no error", () => {
  const error = { type: "invalid_request_error", code: "item_create_duplicate_item_id", message: "", event_id: "t1" };
  const state = after([CREATED, { type: "page.typed", id: "t1", text: "hello" }, { type: "error", error }]);
  assert.equal(state.entries[0].phase, "waiting");
});

test("a new session is set apart from the one before, and unconfirmed messages move into it", () => {
  const state = after([
    ...SPOKEN_TURN,
    { type: "page.typed", id: "t1", text: "still there?" },
    { type: "page.ended" },
    { type: "session.created", session: { id: "sess_2" } },
  ]);
  assert.deepEqual(shown(state), [
    "user/cut: what time  [connection ended]",
    "assistant/cut:  [connection ended]",
    "note/final: A new session starts here. The assistant does not remember what stands above.",
    "user/waiting: still there?",
  ]);
  const next = after([added("t1", "user", [{ type: "input_text", text: "still there?" }], null)], state);
  assert.equal(shown(next).at(-1), "user/final: still there?");
});

test("items of an earlier session are out of reach of a later one with the same ids", () => {
  const state = after([
    CREATED,
    added("u1", "user", [{ type: "input_text", text: "first" }], null),
    { type: "session.created", session: { id: "sess_2" } },
    { type: "conversation.item.deleted", item_id: "u1" },
    added("u1", "user", [{ type: "input_text", text: "second" }], null),
  ]);
  assert.deepEqual(state.entries.map(textOf).filter((text) => !text.startsWith("A new")), ["first", "second"]);
  assert.equal(new Set(state.entries.map((entry) => entry.key)).size, state.entries.length);
});

test("the same session seen again, or updated, starts nothing new", () => {
  const state = after([...SPOKEN_TURN, CREATED, { type: "session.updated", session: { id: "sess_1" } }]);
  assert.equal(state.entries.length, 2);
});

test("items whose end was missed are known, and are told apart once the session is found again", () => {
  const lost = after([...SPOKEN_TURN, said("a1", "It is"), { type: "page.ended" }, CREATED]);
  assert.deepEqual(missed(lost), ["u1", "a1"]);
  const retrieved = (id, role, content, status) => ({
    type: "conversation.item.retrieved",
    item: { id, type: "message", role, content, status },
  });
  const state = after(
    [
      retrieved("u1", "user", speech("What time is it?"), "completed"),
      retrieved("a1", "assistant", [{ type: "output_audio", transcript: "It is ni" }], "incomplete"),
    ],
    lost,
  );
  assert.deepEqual(shown(state), ["user/final: What time is it?", "assistant/cut: It is ni [interrupted]"]);
  assert.deepEqual(missed(state), []);
});

test("an answer that still goes on when its session is found again goes on here too", () => {
  const lost = after([...SPOKEN_TURN, said("a1", "It "), { type: "page.ended" }, CREATED, said("a1", "lost ")]);
  const content = [{ type: "output_audio", transcript: "It is " }];
  const item = { id: "a1", type: "message", role: "assistant", content, status: "in_progress" };
  const open = after([{ type: "conversation.item.retrieved", item }, said("a1", "nine.")], lost);
  assert.equal(shown(open)[1], "assistant/open: It is nine.");
  const whole = done("a1", "assistant", [{ type: "output_audio", transcript: "It is nine." }]);
  assert.equal(shown(after([whole], open))[1], "assistant/final: It is nine.");
  assert.equal(shown(after([whole], lost))[1], "assistant/final: It is nine.");
});

test("an answer whose rest is sent on the way back is open again while its words come, and the same in the end", () => {
  const item = { id: "a1", type: "message", role: "assistant", content: [], status: "in_progress" };
  const begun = [
    CREATED,
    { type: "response.created", response: { id: "r1" } },
    { type: "response.output_item.added", response_id: "r1", item },
    { type: "output_audio_buffer.started", response_id: "r1" },
    said("a1", "It is "),
  ];
  const rest = [
    said("a1", "nine."),
    done("a1", "assistant", [{ type: "output_audio", transcript: "It is nine." }]),
    { type: "response.done", response: { id: "r1", status: "completed" } },
    { type: "output_audio_buffer.stopped", response_id: "r1" },
  ];
  const away = after([...begun, { type: "page.ended" }, { type: "page.ended" }]);
  assert.equal(isAnswering(away), false);
  const back = after([CREATED], away);
  assert.equal(isAnswering(back), true, "it still goes on, as far as the page knows");
  assert.equal(shown(after(rest.slice(0, 1), back)).at(-1), "assistant/open: It is nine.");
  const whole = after(rest, back);
  assert.deepEqual(shown(whole), shown(after([...begun, ...rest])));
  assert.equal(isAnswering(whole), false);
  assert.equal(isAnswering(after([{ type: "session.created", session: { id: "sess_2" } }], away)), false);
});

test("an item that was added while the connection was gone comes in with its end", () => {
  const content = [{ type: "output_text", text: "It is nine." }];
  const state = after([CREATED, { ...done("a1", "assistant", content), previous_item_id: null }]);
  assert.deepEqual(shown(state), ["assistant/final: It is nine."]);
});

test("deleted items leave", () => {
  const state = after([...SPOKEN_TURN, { type: "conversation.item.deleted", item_id: "a1" }]);
  assert.deepEqual(state.entries.map((entry) => entry.id), ["u1"]);
});

test("an answer is going on from its creation until its sound has stopped", () => {
  let state = after(SPOKEN_TURN);
  assert.equal(isAnswering(state), true);
  state = after([{ type: "output_audio_buffer.started", response_id: "resp_1" }, over("resp_1", "completed")], state);
  assert.equal(isAnswering(state), true);
  assert.equal(isAnswering(after([{ type: "output_audio_buffer.stopped", response_id: "resp_1" }], state)), false);
  assert.equal(isAnswering(after([{ type: "output_audio_buffer.cleared", response_id: "resp_1" }], state)), false);
});

test("a day of conversation stays within its bounds, and what left is counted", () => {
  let state = after([CREATED]);
  const huge = "word ".repeat(LIMITS.characters);
  for (let turn = 0; turn < 2_000; turn += 1) {
    const previous = turn === 0 ? null : `u${turn - 1}`;
    state = reduce(state, added(`u${turn}`, "user", [{ type: "input_text", text: turn % 100 ? "hi" : huge }], previous), turn);
  }
  assert.equal(state.entries.length, LIMITS.entries);
  assert.equal(state.dropped, 2_000 - LIMITS.entries);
  assert.equal(state.entries.at(-1).id, "u1999");
  assert.ok(state.entries.every((entry) => textOf(entry).length <= LIMITS.characters));
  let long = after(SPOKEN_TURN);
  for (let piece = 0; piece < 50; piece += 1) {
    long = reduce(long, said("a1", "x".repeat(1_000)), 0);
  }
  assert.equal(textOf(long.entries[1]).length, LIMITS.characters);
});

test("content indices that no server should send neither throw nor grow the entry", () => {
  let state = after([...SPOKEN_TURN, said("a1", "ok")]);
  for (const content_index of [-1, 1.5, LIMITS.parts, 1e9, "0"]) {
    state = reduce(state, { ...said("a1", "bad"), content_index }, 0);
  }
  assert.equal(shown(state)[1], "assistant/open: ok");
});

test("unknown events, and names that every object has, change nothing", () => {
  const state = after(SPOKEN_TURN);
  for (const type of ["rate_limits.updated", "chorale.verdict", "toString", "__proto__", "constructor"]) {
    assert.equal(reduce(state, { type }, 0), state);
  }
});

test("entries that an event does not touch keep their identity", () => {
  const before = after(SPOKEN_TURN);
  const next = reduce(before, said("a1", "hm"), 0);
  assert.equal(next.entries[0], before.entries[0]);
  assert.notEqual(next.entries[1], before.entries[1]);
});

test("screen readers hear of an entry once, when it is finished", () => {
  let state = after(SPOKEN_TURN);
  const told = [];
  for (const event of [
    said("a1", "It is "),
    heard("u1", "What time is it?"),
    said("a1", "nine."),
    done("a1", "assistant", [{ type: "output_audio", transcript: "It is nine." }]),
    over("resp_1", "completed"),
    heard("u1", "What time is it?"),
  ]) {
    const next = reduce(state, event, 0);
    told.push(...finished(state, next).map(textOf));
    state = next;
  }
  assert.deepEqual(told, ["What time is it?", "It is nine."]);
});

test("tool calls are shown as what they are", () => {
  const call = { id: "f1", type: "function_call", name: "weather", call_id: "call_1", arguments: "", status: "in_progress" };
  const state = after([
    CREATED,
    { type: "conversation.item.added", item: call, previous_item_id: null },
    { type: "conversation.item.done", item: { ...call, arguments: '{"city":"Rome"}', status: "completed" } },
  ]);
  assert.deepEqual(shown(state), ['tool/final: weather({"city":"Rome"})']);
});
