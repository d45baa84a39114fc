/**
 * What can go wrong, in the user's words: what happened, what to do, and which one button helps.
 *
 * Pure. A fault is `{kind, detail?, retryAfterMs?}`; links throw or report it inside a `LinkError`.
 */

/** A link could not be opened or ended by itself. */
export class LinkError extends Error {
  constructor(fault) {
    super(fault.detail ?? fault.kind);
    this.fault = fault;
  }
}

/** Faults after which trying again by itself may help; after the others only the user can help. */
const PASSING = new Set(["server-away", "server-busy", "server-failed", "call-lost", "session-ended"]);

export function mayPass(fault) {
  return PASSING.has(fault.kind);
}

/** Faults of the voice side only: the conversation can go on in writing. */
const VOICE_ONLY = new Set([
  "microphone-missing",
  "microphone-denied",
  "microphone-busy",
  "microphone-lost",
  "insecure-page",
  "no-webrtc",
  "call-failed",
]);

export function leavesText(fault) {
  return VOICE_ONLY.has(fault.kind);
}

const TEXTS = {
  "microphone-missing": {
    title: "No microphone found",
    advice: "Plug one in or switch it on, then start again. Until then you can write.",
    action: "talk",
  },
  "microphone-denied": {
    title: "The microphone is blocked for this page",
    advice: "Allow it in the browser’s site settings (the icon beside the address), then start again. You can write meanwhile.",
    action: "talk",
  },
  "microphone-busy": {
    title: "The microphone cannot be opened",
    advice: "Another program may be using it. Close that program, then start again. You can write meanwhile.",
    action: "talk",
  },
  "microphone-lost": {
    title: "The microphone was disconnected",
    advice: "Plug it in again and start again. You can still write and listen.",
    action: "talk",
  },
  "insecure-page": {
    title: "The browser gives no microphone to this address",
    advice: "Open the page over https, or on this machine as localhost. You can write meanwhile.",
    action: null,
  },
  "no-webrtc": {
    title: "This browser cannot make calls",
    advice: "It has no WebRTC, or it is switched off. Use a current browser to talk. You can write meanwhile.",
    action: null,
  },
  "call-failed": {
    title: "No path for the sound",
    advice:
      "The server answered, but no audio connection came about. A firewall or VPN may block UDP. Try again, or write.",
    action: "talk",
  },
  "call-lost": {
    title: "The call broke off",
    advice: "Trying to reach the server again.",
    action: "retry",
  },
  "server-away": {
    title: "The server cannot be reached",
    advice: "It may be starting, or the network is down. The page keeps trying.",
    action: "retry",
  },
  "server-busy": {
    title: "The server is full right now",
    advice: "All places are taken. The page tries again by itself when there may be room.",
    action: "retry",
  },
  "server-failed": {
    title: "The server has a problem",
    advice: "The page keeps trying. If this stays, its operator should look at the server’s log.",
    action: "retry",
  },
  "session-ended": {
    title: "The session has ended",
    advice: "Sessions have a longest duration. A new one is being opened.",
    action: "retry",
  },
  "key-needed": {
    title: "An access key is needed",
    advice: "This server only talks to people with a key. Enter yours in the details.",
    action: "key",
  },
  refused: {
    title: "The server refused the connection",
    advice: "Trying again will not help by itself.",
    action: null,
  },
  "sound-blocked": {
    title: "The browser holds the sound back",
    advice: "It wants a press of a button first.",
    action: "sound",
  },
  "request-refused": {
    title: "The server did not accept that",
    advice: "The session goes on.",
    action: null,
  },
  "outbox-full": {
    title: "Too many messages are waiting",
    advice: "They are sent when the server is back. Please wait before writing more.",
    action: null,
  },
  "page-fault": {
    title: "This page made a mistake",
    advice: "Reload it. If it happens again, please report what the details show.",
    action: null,
  },
};

export const ACTIONS = { talk: "Start again", retry: "Try now", key: "Enter key", sound: "Play sound" };

/** Returns `{title, advice, detail, action}` for a fault; an unknown kind is a fault of the page. */
export function explain(fault) {
  const text = TEXTS[fault.kind] ?? TEXTS["page-fault"];
  return { ...text, detail: fault.detail ?? "" };
}

/** Names of `getUserMedia` errors (Media Capture and Streams, §10.3) → our faults. */
const MICROPHONE = {
  NotFoundError: "microphone-missing",
  OverconstrainedError: "microphone-missing",
  NotAllowedError: "microphone-denied",
  SecurityError: "microphone-denied",
  NotReadableError: "microphone-busy",
  AbortError: "microphone-busy",
};

export function fromMicrophone(error) {
  return { kind: MICROPHONE[error.name] ?? "microphone-busy", detail: error.message };
}

/** The fault of an HTTP answer that is no success. `message` is the server's own, if it sent one. */
export function fromStatus(status, retryAfterMs, message) {
  if (status === 401) {
    return { kind: "key-needed", detail: message };
  }
  if (status === 429 || status === 503) {
    return { kind: "server-busy", detail: message, retryAfterMs };
  }
  return { kind: status >= 500 ? "server-failed" : "refused", status, detail: message || `HTTP ${status}` };
}

/** The fault behind a WebSocket's close code (RFC 6455 §7.4.1, and the codes that the protocol uses). */
export function fromClose(code, reason, wasOpen) {
  if (code === 1008) {
    return { kind: "key-needed", detail: reason };
  }
  if (code === 1013) {
    return { kind: "server-busy", detail: reason };
  }
  if (code === 1001 && wasOpen) {
    return { kind: "session-ended", detail: reason };
  }
  return { kind: "server-away", detail: reason };
}

/** Errors that say only that a wish of ours came too late. */
const HARMLESS = new Set([
  "response_cancel_not_active",
  "item_retrieve_invalid_item_id",
  "item_create_duplicate_item_id",
  "conversation_already_has_active_response",
]);

/** Whether an error of this code is nothing to be told of. */
export function isHarmless(code) {
  return HARMLESS.has(code);
}
