/**
 * The connection's states, as a table, and how long to wait between attempts.
 *
 * Pure: chance comes in as an argument and nothing here waits, so a test is a loop over numbers.
 */

/**
 * idle: nobody asked for a connection. connecting: the first attempt runs. live: events flow. reconnecting: it was live
 * and the first attempts to come back run. away: several attempts failed; more follow, further apart.
 */
export const STATES = ["idle", "connecting", "live", "reconnecting", "away"];

/** After so many failed attempts in a row, "reconnecting" is called "away". */
export const PATIENCE = 3;

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 20_000;

/**
 * state → event → next state. dial: the user asked. opened: events flow. steady: they have flowed for a while. lost: a
 * live link ended without being asked to. failed: an attempt failed and another may help. refused: an attempt failed and
 * another will not help (no key, no WebRTC). stop: the user hung up or gave up.
 */
const TABLE = {
  idle: { dial: "connecting", stop: "idle" },
  connecting: { dial: "connecting", opened: "live", failed: "away", refused: "idle", stop: "idle" },
  live: { dial: "connecting", steady: "live", lost: "reconnecting", refused: "idle", stop: "idle" },
  reconnecting: { dial: "connecting", opened: "live", failed: "reconnecting", refused: "idle", stop: "idle" },
  away: { dial: "connecting", opened: "live", failed: "away", refused: "idle", stop: "idle" },
};

export const START = { name: "idle", attempts: 0 };

/** Events that leave the count of failures alone: a server that accepts and breaks off at once is not back yet. */
const KEEPS_COUNT = new Set(["opened", "lost"]);

/** Returns the state after `event`; throws where the table has no row, which is a fault of the page itself. */
export function step(state, event) {
  const name = TABLE[state.name]?.[event];
  if (name === undefined) {
    throw new Error(`connection: no transition from ${state.name} on ${event}`);
  }
  if (event !== "failed") {
    return { name, attempts: KEEPS_COUNT.has(event) ? state.attempts : 0 };
  }
  const attempts = state.attempts + 1;
  return { name: attempts >= PATIENCE ? "away" : name, attempts };
}

/**
 * How long to wait before the next attempt: exponential from half a second to 20 s, of which the upper half is left to
 * chance (`random` in [0, 1)), so that the pages of a restarted server do not all return in the same instant. A server
 * that named a time (`retryAfterMs`) is never asked earlier.
 */
export function delayMs(attempts, random, retryAfterMs = 0) {
  const ceiling = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.max(0, attempts));
  return Math.round(Math.max(ceiling / 2 + (ceiling / 2) * random, retryAfterMs + FIRST_DELAY_MS * random));
}
