import assert from "node:assert/strict";
import { test } from "node:test";

import { EMPTY } from "../../../orchestrator/transports/web/conversation.js";
import { KEEPS_MS, keep, recall } from "../../../orchestrator/transports/web/memory.js";
import { creation, newId } from "../../../orchestrator/transports/web/message.js";
import { shortcutOf } from "../../../orchestrator/transports/web/shortcuts.js";

/** A tab's storage that takes texts of so many characters. */
class Store {
  #kept = new Map();
  #most;

  constructor(most = Infinity) {
    this.#most = most;
  }

  getItem(name) {
    return this.#kept.get(name) ?? null;
  }

  setItem(name, text) {
    if (text.length > this.#most) {
      throw new Error("QuotaExceededError");
    }
    this.#kept.set(name, text);
  }

  removeItem(name) {
    this.#kept.delete(name);
  }

  get size() {
    return this.#kept.size;
  }
}

const entries = (count) => Array.from({ length: count }, (_, n) => ({ key: `1:${n}`, parts: ["word ".repeat(20)] }));

const kept = (count) => ({
  mode: "text",
  isMuted: false,
  place: { sessionId: "sess_x", secret: "rs_x", last: 7 },
  lostCall: null,
  conversation: { ...EMPTY, entries: entries(count) },
});

test("what is kept comes back as it was, and once", () => {
  const store = new Store();
  keep(store, kept(3), 1_000);
  const { version, at, ...found } = recall(store, 1_000 + KEEPS_MS);
  assert.deepEqual(found, kept(3));
  assert.deepEqual([version, at], [1, 1_000]);
  assert.equal(recall(store, 1_001), null);
  assert.equal(store.size, 0);
});

test("what is old, of a clock that was set back, of another page or broken is thrown away", () => {
  for (const now of [1_001 + KEEPS_MS, 999]) {
    const store = new Store();
    keep(store, kept(1), 1_000);
    assert.equal(recall(store, now), null);
    assert.equal(store.size, 0);
  }
  for (const text of ["", "{", "null", "7", "[]", '{"version":2,"at":1000}', '{"version":1}']) {
    const store = new Store();
    store.setItem("chorale.session", text);
    assert.equal(recall(store, 1_000), null, text);
    assert.equal(store.size, 0);
  }
});

test("of a conversation that is too long for the store the end is kept, and what is missing is counted", () => {
  const most = JSON.stringify(kept(60)).length;
  const store = new Store(most);
  keep(store, kept(200), 1_000);
  const { conversation } = recall(store, 1_000);
  assert.deepEqual(conversation.entries, entries(200).slice(-50));
  assert.equal(conversation.dropped, 150);
});

test("without a store nothing is kept, and nothing goes wrong", () => {
  keep(null, kept(1), 1_000);
  assert.equal(recall(null, 1_000), null);
  const full = new Store(0);
  keep(full, kept(1), 1_000);
  assert.equal(recall(full, 1_000), null);
});

test("a message is named once, and its event after it", () => {
  const ids = new Set(Array.from({ length: 100 }, newId));
  assert.equal(ids.size, 100);
  const { event_id, item } = creation({ id: "item_a", parts: ["hello"] });
  assert.equal(event_id, item.id);
  assert.equal(item.content[0].text, "hello");
});

test("M mutes where no text is written, Escape stops anywhere", () => {
  const key = (name, more = {}) => shortcutOf({ key: name, target: { closest: () => null }, ...more });
  assert.equal(key("m"), "mute");
  assert.equal(key("M"), "mute");
  assert.equal(key("m", { ctrlKey: true }), null);
  assert.equal(key("m", { target: { closest: () => ({}) } }), null);
  assert.equal(key("m", { target: {} }), "mute", "nothing has the focus");
  assert.equal(key("Escape", { target: { closest: () => ({}) } }), "stop");
  assert.equal(key("Escape", { isComposing: true }), null);
  assert.equal(key("x"), null);
});
