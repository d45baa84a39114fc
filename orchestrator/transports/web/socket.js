/**
 * A text-only link: the same events over a WebSocket, for when there is no microphone, no permission or no WebRTC.
 *
 * Links share one shape: `open(signal)`, `send(event)`, `close()`, `leave()`, and a listener `{event, lost}`.
 */

import { LinkError, fromClose } from "./faults.js";

const OPEN_TIMEOUT_MS = 10_000;

export class Socket {
  #endpoint;
  #listener;
  #ticket;
  #socket = null;

  /** `ticket` names a session to come back to, if it still lives; null opens a new one. */
  constructor(endpoint, listener, ticket) {
    this.#endpoint = endpoint;
    this.#listener = listener;
    this.#ticket = ticket;
  }

  get isVoice() {
    return false;
  }

  /** Resolves once events can flow. Throws `LinkError`, or the signal's reason when aborted. */
  async open(signal) {
    signal.throwIfAborted();
    const isBack = this.#ticket !== null && (await this.#comesBack(signal));
    if (!isBack && !(await this.#connect(null, signal))) {
      throw new LinkError(await this.#endpoint.diagnose(signal));
    }
    this.#socket.onclose = ({ code, reason }) => this.#listener.lost(fromClose(code, reason, true));
  }

  /** Returns whether we are back; false where the session is gone. Throws `LinkError` where it may yet be come back to. */
  async #comesBack(signal) {
    if (await this.#connect(this.#ticket, signal)) {
      return true;
    }
    const fault = await this.#endpoint.diagnose(signal, this.#ticket);
    if (fault.status === 404) {
      return false;
    }
    throw new LinkError(fault);
  }

  /** Returns whether the server let us in. */
  async #connect(ticket, signal) {
    const socket = this.#endpoint.socket(ticket);
    this.#socket = socket;
    const isOpen = await new Promise((resolve) => {
      socket.onopen = () => resolve(true);
      socket.onclose = () => resolve(false);
      AbortSignal.any([signal, AbortSignal.timeout(OPEN_TIMEOUT_MS)]).addEventListener("abort", () => resolve(false));
      // The server speaks first, and may do so before the task that awaits this promise runs.
      socket.onmessage = (message) => this.#receive(message);
    });
    if (!isOpen) {
      this.close();
      signal.throwIfAborted();
    }
    return isOpen;
  }

  /** Returns whether the event was handed to the browser for sending. */
  send(event) {
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      return false;
    }
    this.#socket.send(JSON.stringify(event));
    return true;
  }

  /** Ends the link without telling the listener. */
  close() {
    const socket = this.#socket;
    this.#socket = null;
    if (socket !== null) {
      socket.onopen = socket.onclose = socket.onmessage = null;
      socket.close(1000);
    }
  }

  /** As `close`: a socket that ends says nothing about its session. */
  leave() {
    this.close();
  }

  #receive(message) {
    if (typeof message.data === "string") {
      this.#listener.event(message.data);
    }
  }
}
