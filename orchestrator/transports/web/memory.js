/**
 * What the page keeps over its own reload: where it stands in its session, and the conversation as it was shown.
 *
 * It is written when the page goes away and taken out when it comes, so that a copy of the tab has nothing, and a page
 * that is opened again later (browsers keep a closed tab's storage too) does not begin to listen by itself. Pure but for
 * the `store`, a `Storage` or null where the browser forbids it.
 */

const KEPT = "chorale.session";

/** Changes with the shape of what is kept: a page that is newer than what it finds begins anew. */
const VERSION = 1;

/** About as long as a server waits for a client that has gone. */
export const KEEPS_MS = 60_000;

/** Entries that are kept where all of them together are too much for the store. */
const FEWER = [50, 10, 0];

/** Keeps `{mode, isMuted, place, lostCall, conversation}`, the latest entries of it where there is no room for all. */
export function keep(store, kept, now) {
  const entries = kept.conversation.entries;
  for (const count of [entries.length, ...FEWER]) {
    const latest = count === 0 ? [] : entries.slice(-count);
    const dropped = kept.conversation.dropped + entries.length - latest.length;
    const conversation = { ...kept.conversation, entries: latest, dropped };
    try {
      store?.setItem(KEPT, JSON.stringify({ ...kept, conversation, version: VERSION, at: now }));
      return;
    } catch {
      // There is no room for it: the next is less.
    }
  }
}

/** Takes out what was kept; null where there is nothing, or where it is too old to be gone on with. */
export function recall(store, now) {
  const text = store?.getItem(KEPT) ?? null;
  store?.removeItem(KEPT);
  let kept;
  try {
    kept = JSON.parse(text);
  } catch {
    return null;
  }
  if (kept?.version !== VERSION) {
    return null;
  }
  const age = now - kept.at;
  return age >= 0 && age <= KEEPS_MS ? kept : null;
}

/** This tab's storage, or null where the browser's settings forbid it. */
export function storage() {
  try {
    return globalThis.sessionStorage;
  } catch {
    return null;
  }
}
