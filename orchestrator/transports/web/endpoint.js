/**
 * Where the server is and how to ask it: addresses relative to the page (so that a prefix of a reverse proxy keeps
 * working), the access key, and HTTP answers turned into faults.
 */

import { LinkError, fromStatus } from "./faults.js";

const KEY = "chorale.key";
const POST_TIMEOUT_MS = 15_000;

export class Endpoint {
  #base;
  #store;
  #lostCall = null;

  /** `store` keeps the key for this tab only (`sessionStorage`); it may be null where storage is blocked. */
  constructor(base, store) {
    this.#base = base;
    this.#store = store;
  }

  get key() {
    return this.#store?.getItem(KEY) ?? "";
  }

  set key(value) {
    if (value === "") {
      this.#store?.removeItem(KEY);
    } else {
      this.#store?.setItem(KEY, value);
    }
  }

  /** Sends an offer, to a new session or to the one that a `ticket` names; returns `{answer, callId}`. Throws `LinkError`. */
  async call(sdp, signal, ticket = null) {
    const path = ticket === null ? "v1/realtime/calls" : `v1/realtime/calls?${new URLSearchParams(placeOf(ticket))}`;
    const headers = { "Content-Type": "application/sdp" };
    if (ticket !== null) {
      headers["Chorale-Session-Secret"] = ticket.secret;
    }
    const response = await this.#post(path, sdp, headers, signal);
    const callId = (response.headers.get("Location") ?? "").split("/").pop();
    this.#lostCall = null;
    return { answer: await response.text(), callId };
  }

  /** Ends a call; sent also while the page goes away. What comes of it is not awaited: the peer closes in any case. */
  hangUp(callId) {
    const address = new URL(`v1/realtime/calls/${encodeURIComponent(callId)}/hangup`, this.#base);
    fetch(address, { method: "POST", headers: this.#headers(), keepalive: true }).catch(() => {});
  }

  /** The call that broke off last, or null. */
  get lostCall() {
    return this.#lostCall;
  }

  /** A call broke off. The server holds its session for a while. */
  lose(callId) {
    this.#lostCall = callId;
  }

  /** Ends the session of a call that broke off, where it was not come back to. */
  hangUpLost() {
    if (this.#lostCall !== null) {
      this.hangUp(this.#lostCall);
      this.#lostCall = null;
    }
  }

  /**
   * Opens a WebSocket: to a new session, or with a `ticket` (`{sessionId, secret, last}`) to the one that it names, from
   * the event behind the last one; the secret is in no address. Throws `LinkError` where the key cannot travel in a
   * subprotocol.
   */
  socket(ticket = null) {
    const address = new URL("v1/realtime", this.#base);
    address.search = new URLSearchParams(ticket === null ? { model: "default" } : placeOf(ticket));
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const protocols = ["realtime"];
    if (this.key !== "") {
      protocols.push(`openai-insecure-api-key.${this.key}`);
    }
    if (ticket !== null) {
      protocols.push(`chorale-session-secret.${ticket.secret}`);
    }
    try {
      return new WebSocket(address, protocols);
    } catch (error) {
      throw new LinkError({ kind: "key-needed", detail: `The key has characters that cannot be sent. ${error.message}` });
    }
  }

  /**
   * Finds out why a WebSocket was refused, which browsers keep to themselves: an empty offer with the same key is refused
   * for the same reason over HTTP, and for being empty where there is no other. Returns a fault; with a `ticket` one of
   * status 404 where the session that it names is gone.
   */
  async diagnose(signal, ticket = null) {
    try {
      await this.call("", signal, ticket);
    } catch (error) {
      if (!(error instanceof LinkError)) {
        throw error;
      }
      const isGone = ticket !== null && error.fault.status === 404;
      if (error.fault.kind !== "refused" || error.fault.status === 403 || isGone) {
        return error.fault;
      }
    }
    return { kind: "server-failed", detail: "The server answers, but refused the WebSocket." };
  }

  #headers(more = {}) {
    return this.key === "" ? more : { ...more, Authorization: `Bearer ${this.key}` };
  }

  async #post(path, body, headers, signal) {
    let response;
    try {
      response = await fetch(new URL(path, this.#base), {
        method: "POST",
        headers: this.#headers(headers),
        body,
        signal: AbortSignal.any([signal, AbortSignal.timeout(POST_TIMEOUT_MS)]),
      });
    } catch {
      // What browsers say here ("Failed to fetch") tells a reader nothing.
      signal.throwIfAborted();
      throw new LinkError({ kind: "server-away" });
    }
    if (!response.ok) {
      throw new LinkError(fromStatus(response.status, retryAfterMs(response), await messageOf(response)));
    }
    return response;
  }
}

function placeOf(ticket) {
  const place = { session_id: ticket.sessionId };
  return ticket.last === null ? place : { ...place, after: ticket.last };
}

function retryAfterMs(response) {
  const seconds = Number(response.headers.get("Retry-After"));
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 60) * 1000 : 0;
}

/** The server's own words: `error.message` of its JSON, at most 300 characters. */
async function messageOf(response) {
  try {
    const body = await response.json();
    return String(body?.error?.message ?? "").slice(0, 300);
  } catch {
    return "";
  }
}
