/**
 * The conversation as the page shows it: server events in, a new view state out.
 *
 * Pure: no DOM, no clock. States are values; an entry that did not change keeps its identity, so a view may compare by
 * `===`. Everything is bounded by `LIMITS`: a page left open for a day does not grow.
 *
 * Order follows `previous_item_id`. Sessions follow each other in one list; `epoch` counts them, and an item is only ever
 * placed among its own session's.
 */

export const LIMITS = { entries: 200, characters: 20_000, parts: 8, waiting: 20 };

/**
 * What an entry is doing. waiting: typed, not yet confirmed by the server. open: words still come. final: complete.
 * cut: ended before its end (interrupted). failed: will not be completed.
 */
export const PHASES = ["waiting", "open", "final", "cut", "failed"];

export const EMPTY = Object.freeze({
  sessionId: null,
  epoch: 0,
  entries: [],
  dropped: 0,
  hearing: null,
  responseId: null,
  playing: false,
  away: null,
});

const ENDED = "connection ended";

/** What became, by its status, of an item whose end was missed. */
const ENDINGS = {
  in_progress: { phase: "open", mark: null },
  completed: { phase: "final", mark: null },
  incomplete: { phase: "cut", mark: "interrupted" },
};

/** Returns the state after one server event, or after one of the page's own (`page.typed`, `page.ended`). */
export function reduce(state, event, now) {
  const row = Object.hasOwn(RULES, event.type) ? RULES[event.type] : undefined;
  return row === undefined ? state : bounded(row(state, event, now));
}

/** The text of an entry, its content parts joined. */
export function textOf(entry) {
  return entry.parts.filter((part) => part !== "").join(" ");
}

/** Whether an answer is being made or played, so that interrupting it means something. */
export function isAnswering(state) {
  return state.responseId !== null || state.playing;
}

/** Typed messages that the server has not confirmed, oldest first: what a new session must be told again. */
export function waiting(state) {
  return state.entries.filter((entry) => entry.phase === "waiting");
}

/** Ids of this session's items whose end was missed: to be asked for when the session is found again. */
export function missed(state) {
  return state.entries.filter((entry) => entry.mark === ENDED && entry.epoch === state.epoch).map((entry) => entry.id);
}

/** Entries that came to their end between two states, in order: what a screen reader should hear of. */
export function finished(before, after) {
  if (before.entries === after.entries) {
    return [];
  }
  const known = new Map(before.entries.map((entry) => [entry.key, entry]));
  return after.entries.filter((entry) => {
    const ended = entry.phase === "final" || entry.phase === "cut" || entry.phase === "failed";
    const old = known.get(entry.key);
    const wasOpen = old === undefined || old.phase === "open" || old.phase === "waiting";
    return ended && wasOpen && (textOf(entry) !== "" || entry.mark !== null);
  });
}

const RULES = {
  "session.created": sessionSeen,
  "session.updated": sessionSeen,
  "input_audio_buffer.speech_started": speechStarted,
  "input_audio_buffer.speech_stopped": (state, event) =>
    state.hearing === event.item_id ? { ...state, hearing: null } : state,
  "conversation.item.added": itemAdded,
  "conversation.item.done": itemDone,
  "conversation.item.retrieved": itemRetrieved,
  "conversation.item.truncated": (state, event) =>
    change(state, event.item_id, (entry) => ({ ...entry, phase: "cut", mark: "interrupted" })),
  "conversation.item.deleted": (state, event) => ({
    ...state,
    entries: state.entries.filter((entry) => !belongs(state, entry, event.item_id)),
  }),
  "conversation.item.input_audio_transcription.delta": transcriptDelta,
  "conversation.item.input_audio_transcription.completed": transcriptCompleted,
  "conversation.item.input_audio_transcription.failed": transcriptFailed,
  "response.created": (state, event) => ({ ...state, responseId: event.response.id }),
  "response.output_item.added": outputItemAdded,
  "response.output_item.done": itemDone,
  "response.output_text.delta": answerDelta,
  "response.output_audio_transcript.delta": answerDelta,
  "response.output_text.done": (state, event) => answerDone(state, event, event.text),
  "response.output_audio_transcript.done": (state, event) => answerDone(state, event, event.transcript),
  "response.done": responseDone,
  "output_audio_buffer.started": (state) => ({ ...state, playing: true }),
  "output_audio_buffer.stopped": (state) => ({ ...state, playing: false }),
  "output_audio_buffer.cleared": (state) => ({ ...state, playing: false }),
  error: requestRefused,
  "page.typed": typed,
  "page.ended": ended,
};

function sessionSeen(state, event, now) {
  const id = event.session?.id ?? null;
  if (id === null) {
    return state;
  }
  if (id === state.sessionId) {
    return state.away === null ? state : { ...state, ...state.away, away: null };
  }
  const fresh = { ...EMPTY, entries: state.entries, dropped: state.dropped, sessionId: id, epoch: state.epoch + 1 };
  const settled = state.entries.filter((entry) => entry.phase !== "waiting").map(settle);
  if (settled.length === 0) {
    return { ...fresh, entries: state.entries.map((entry) => ({ ...entry, epoch: fresh.epoch })) };
  }
  const divider = entryOf("note", "note", fresh.epoch, now, {
    phase: "final",
    parts: ["A new session starts here. The assistant does not remember what stands above."],
  });
  const carried = waiting(state).map((entry) => ({ ...entry, epoch: fresh.epoch }));
  return { ...fresh, entries: [...settled, divider, ...carried] };
}

function speechStarted(state, event, now) {
  const stale = state.entries.filter((entry) => !isUnheardPlaceholder(entry));
  const heard = { ...state, entries: stale, hearing: event.item_id };
  if (find(heard, event.item_id) !== undefined) {
    return heard;
  }
  return append(heard, entryOf(event.item_id, "user", state.epoch, now, { how: "spoken", placed: false }));
}

/** A stretch of sound that began but never became an item: noise, by the server's own judgement. */
function isUnheardPlaceholder(entry) {
  return !entry.placed && entry.how === "spoken" && entry.phase === "open" && textOf(entry) === "";
}

function itemAdded(state, event, now) {
  const { item } = event;
  if (typeof item?.id !== "string") {
    return state;
  }
  const old = find(state, item.id);
  const entry = { ...(old ?? entryOf(item.id, voiceOf(item), state.epoch, now)), ...described(item, old), placed: true };
  return place(state, entry, event.previous_item_id);
}

/** An item that nobody announced (it was added while the connection was gone) is taken in with its end. */
function itemDone(state, event, now) {
  const { item } = event;
  const isNew = event.type === "conversation.item.done" && find(state, item?.id) === undefined;
  const known = isNew ? itemAdded(state, event, now) : state;
  return change(known, item?.id, (entry) => ({ ...entry, ...described(item, entry, true) }));
}

function itemRetrieved(state, event) {
  const { item } = event;
  return change(state, item?.id, (entry) => {
    const parts = partsOf(item);
    const said = parts.some((part) => part !== "") ? parts : entry.parts;
    if (entry.mark === ENDED) {
      return { ...entry, parts: said, ...ENDINGS[item.status ?? "completed"] };
    }
    return { ...entry, parts: said, heard: true };
  });
}

function transcriptDelta(state, event, now) {
  const known = find(state, event.item_id) !== undefined;
  const entry = entryOf(event.item_id, "user", state.epoch, now, { how: "spoken", placed: false });
  return change(known ? state : append(state, entry), event.item_id, (old) =>
    reopened(old).phase === "open" ? grown(reopened(old), event.content_index, event.delta) : old,
  );
}

function transcriptCompleted(state, event) {
  return change(state, event.item_id, (entry) => {
    const parts = withPart(entry.parts, event.content_index, event.transcript);
    const mark = event.transcript.trim() === "" ? "no words understood" : null;
    return { ...entry, parts, phase: "final", mark };
  });
}

function transcriptFailed(state, event) {
  const mark = `not understood: ${event.error?.message ?? "the recogniser failed"}`;
  return change(state, event.item_id, (entry) => ({ ...entry, phase: "failed", mark }));
}

function outputItemAdded(state, event, now) {
  const { item } = event;
  if (typeof item?.id !== "string" || find(state, item.id) !== undefined) {
    return change(state, item?.id, (entry) => ({ ...entry, responseId: event.response_id }));
  }
  const entry = { ...entryOf(item.id, voiceOf(item), state.epoch, now), ...described(item, undefined) };
  return append(state, { ...entry, responseId: event.response_id });
}

function answerDelta(state, event) {
  return change(state, event.item_id, (entry) =>
    grown(reopened(entry), event.content_index, event.delta, event.response_id),
  );
}

function answerDone(state, event, text) {
  return change(state, event.item_id, (entry) =>
    entry.heard ? entry : { ...entry, parts: withPart(entry.parts, event.content_index, text) },
  );
}

function responseDone(state, event, now) {
  const { id, status, status_details: details } = event.response;
  const over = state.responseId === id ? { ...state, responseId: null } : state;
  if (status === "completed") {
    return over;
  }
  const phase = status === "failed" ? "failed" : "cut";
  const mark = { cancelled: "interrupted", incomplete: "stopped at its longest length" }[status] ?? "not finished";
  const entries = over.entries.flatMap((entry) => {
    if (entry.responseId !== id || entry.voice !== "assistant") {
      return [entry];
    }
    return textOf(entry) === "" ? [] : [{ ...entry, phase, mark: entry.mark ?? mark }];
  });
  if (status !== "failed") {
    return { ...over, entries };
  }
  const why = entryOf(`failed:${id}`, "note", state.epoch, now, {
    phase: "failed",
    parts: [`That could not be answered: ${details?.error?.message ?? "the server did not say why"}`],
  });
  return { ...over, entries: [...entries, why] };
}

/** An `error` that answers a typed message (the page names its events after the item) marks that message. */
function requestRefused(state, event) {
  const about = event.error?.event_id;
  if (typeof about !== "string" || event.error.code === "item_create_duplicate_item_id") {
    return state;
  }
  return change(state, about, (entry) =>
    entry.phase === "waiting" ? { ...entry, phase: "failed", mark: `not sent: ${event.error.message}` } : entry,
  );
}

function typed(state, event, now) {
  const entry = entryOf(event.id, "user", state.epoch, now, { how: "typed", phase: "waiting", placed: false });
  return append(state, { ...entry, parts: [event.text] });
}

/** The connection is gone. What was under way then is kept aside, for the session may be found again. */
function ended(state) {
  const entries = state.entries.filter((entry) => !isUnheardPlaceholder(entry)).map(settle);
  const away = state.away ?? { responseId: state.responseId, playing: state.playing };
  return { ...state, entries, hearing: null, responseId: null, playing: false, away };
}

/** More words come of what was taken for cut off. */
function reopened(entry) {
  return entry.mark === ENDED ? { ...entry, phase: "open", mark: null } : entry;
}

/** What is still open when its session is gone stays as it is, marked. */
function settle(entry) {
  return entry.phase === "open" ? { ...entry, phase: "cut", mark: ENDED } : entry;
}

function entryOf(id, voice, epoch, now, more = {}) {
  const fixed = { key: `${epoch}:${id}`, id, voice, epoch, at: now, how: null, parts: [], phase: "open", mark: null };
  return { ...fixed, responseId: null, heard: false, placed: true, ...more };
}

function voiceOf(item) {
  return item.type === "message" ? item.role : "tool";
}

/** What an item object says about its entry. Words already shown are not taken back by an item without words. */
function described(item, old, isDone = false) {
  const told = partsOf(item);
  const parts = told.some((part) => part !== "") && !old?.heard ? told : (old?.parts ?? []);
  const spoken = item.content?.some((part) => part.type === "input_audio" || part.type === "output_audio");
  const how = spoken ? "spoken" : (old?.how ?? (item.role === "user" ? "typed" : null));
  return { parts, how, ...phaseOf(item, old, isDone, how) };
}

function phaseOf(item, old, isDone, how) {
  const isNew = old === undefined || old.mark === ENDED;
  const before = isNew ? { phase: "open", mark: null } : { phase: old.phase, mark: old.mark };
  if (item.role === "assistant") {
    if (!isDone || before.phase === "cut" || before.phase === "failed") {
      return before;
    }
    return item.status === "incomplete" ? { phase: "cut", mark: "interrupted" } : { phase: "final", mark: null };
  }
  if (item.role === "user" && how === "spoken") {
    return before;
  }
  return item.status === "in_progress" ? before : { phase: "final", mark: null };
}

function partsOf(item) {
  if (item.type === "function_call") {
    return [`${item.name}(${item.arguments})`.slice(0, LIMITS.characters)];
  }
  if (item.type === "function_call_output") {
    return [`→ ${item.output}`.slice(0, LIMITS.characters)];
  }
  const content = Array.isArray(item.content) ? item.content.slice(0, LIMITS.parts) : [];
  return content.map((part) => String(part.text ?? part.transcript ?? "").slice(0, LIMITS.characters));
}

function grown(entry, index, delta, responseId = entry.responseId) {
  const parts = withPart(entry.parts, index, (entry.parts[index] ?? "") + delta);
  return { ...entry, parts, responseId };
}

function withPart(parts, index, text) {
  if (!Number.isInteger(index) || index < 0 || index >= LIMITS.parts) {
    return parts;
  }
  const next = [...parts];
  while (next.length <= index) {
    next.push("");
  }
  next[index] = text.slice(0, LIMITS.characters);
  return next;
}

function belongs(state, entry, id) {
  return entry.id === id && entry.epoch === state.epoch;
}

function find(state, id) {
  return state.entries.findLast((entry) => belongs(state, entry, id));
}

function change(state, id, edit) {
  const index = state.entries.findLastIndex((entry) => belongs(state, entry, id));
  if (index < 0) {
    return state;
  }
  const entries = [...state.entries];
  entries[index] = edit(entries[index]);
  return entries[index] === state.entries[index] ? state : { ...state, entries };
}

function append(state, entry) {
  return { ...state, entries: [...state.entries, entry] };
}

/** Puts an entry behind `previousId`; `null` is the front of its session, an unknown id leaves it where it stands. */
function place(state, entry, previousId) {
  const others = state.entries.filter((other) => !belongs(state, other, entry.id));
  const first = others.findIndex((other) => other.epoch === state.epoch && other.voice !== "note");
  const behind = others.findLastIndex((other) => belongs(state, other, previousId));
  let index = behind + 1;
  if (previousId === null) {
    index = first < 0 ? others.length : first;
  } else if (behind < 0) {
    const old = state.entries.findLastIndex((other) => belongs(state, other, entry.id));
    index = old < 0 ? others.length : old;
  }
  return { ...state, entries: [...others.slice(0, index), entry, ...others.slice(index)] };
}

function bounded(state) {
  const over = state.entries.length - LIMITS.entries;
  return over <= 0 ? state : { ...state, entries: state.entries.slice(over), dropped: state.dropped + over };
}
