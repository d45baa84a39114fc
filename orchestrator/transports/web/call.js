/**
 * A voice link: microphone and answer over WebRTC, events over the data channel `oai-events`.
 *
 * The offer is sent without candidates, as browsers make it; the server offers its own and answers our checks.
 */

import { LinkError } from "./faults.js";

/** From the server's answer to an open data channel; ICE and DTLS take well under a second where there is a path. */
const CONNECT_TIMEOUT_MS = 12_000;

/** ICE `disconnected` often heals by itself (a change of network); after this long it counts as lost. */
const HEAL_MS = 4_000;

export class Call {
  #endpoint;
  #listener;
  #microphone;
  #peer = null;
  #channel = null;
  #callId = null;
  #healing = null;
  #ticket;

  /**
   * `microphone` stays the caller's: closing the call does not stop it. `listener` also has `sound(stream)`. `ticket`
   * names a session to come back to, if it still lives; null opens a new one.
   */
  constructor(endpoint, microphone, listener, ticket) {
    this.#endpoint = endpoint;
    this.#microphone = microphone;
    this.#listener = listener;
    this.#ticket = ticket;
  }

  get isVoice() {
    return true;
  }

  /** Resolves once events can flow. Throws `LinkError`, or the signal's reason when aborted. */
  async open(signal) {
    signal.throwIfAborted();
    const peer = new RTCPeerConnection();
    this.#peer = peer;
    try {
      const opened = this.#prepare(peer);
      await peer.setLocalDescription(await peer.createOffer());
      const { answer, callId } = await this.#offer(peer.localDescription.sdp, signal);
      this.#callId = callId;
      signal.throwIfAborted();
      await peer.setRemoteDescription({ type: "answer", sdp: answer });
      await within(opened, CONNECT_TIMEOUT_MS, signal);
    } catch (error) {
      if (this.#ticket !== null && !signal.aborted) {
        this.leave(); // the session may yet be come back to, or hung up
      }
      this.close();
      signal.throwIfAborted();
      throw error instanceof LinkError ? error : new LinkError({ kind: "call-failed", detail: error.message });
    }
    this.#watch(peer);
  }

  /** Returns whether the event was handed to the browser for sending. */
  send(event) {
    if (this.#channel?.readyState !== "open") {
      return false;
    }
    this.#channel.send(JSON.stringify(event));
    return true;
  }

  /** Ends the call here and on the server without telling the listener. */
  close() {
    clearTimeout(this.#healing);
    if (this.#channel !== null) {
      this.#channel.onopen = this.#channel.onclose = this.#channel.onmessage = null;
    }
    if (this.#peer !== null) {
      this.#peer.ontrack = this.#peer.onconnectionstatechange = null;
      this.#peer.close();
    }
    if (this.#callId) {
      this.#endpoint.hangUp(this.#callId);
    }
    this.#channel = this.#peer = this.#callId = null;
  }

  /** Ends the call here. The server is not told: it holds the session for a while, for us to come back. */
  leave() {
    if (this.#callId !== null) {
      this.#endpoint.lose(this.#callId);
    }
    this.#callId = null;
    this.close();
  }

  /** Offers the call to the session that the ticket names, or, where that is gone, to a new one. */
  async #offer(sdp, signal) {
    if (this.#ticket !== null) {
      try {
        return await this.#endpoint.call(sdp, signal, this.#ticket);
      } catch (error) {
        if (!(error instanceof LinkError) || error.fault.kind !== "refused") {
          throw error;
        }
        this.#ticket = null;
      }
    }
    return this.#endpoint.call(sdp, signal);
  }

  /** Adds tracks and the channel; returns a promise of the channel being open. */
  #prepare(peer) {
    for (const track of this.#microphone.getAudioTracks()) {
      peer.addTrack(track, this.#microphone);
    }
    peer.ontrack = ({ streams, track }) => this.#listener.sound(streams[0] ?? new MediaStream([track]));
    const channel = peer.createDataChannel("oai-events");
    this.#channel = channel;
    channel.onmessage = ({ data }) => {
      if (typeof data === "string") {
        this.#listener.event(data);
      }
    };
    return new Promise((resolve, reject) => {
      channel.onopen = resolve;
      peer.onconnectionstatechange = () => {
        if (peer.connectionState === "failed") {
          reject(new LinkError({ kind: "call-failed", detail: "ICE found no path to the server." }));
        }
      };
    });
  }

  #watch(peer) {
    this.#channel.onclose = () => this.#lose("The server closed the call.");
    peer.onconnectionstatechange = () => {
      clearTimeout(this.#healing);
      if (peer.connectionState === "failed") {
        this.#lose("The network path was lost.");
      } else if (peer.connectionState === "disconnected") {
        this.#healing = setTimeout(() => this.#lose("The network path was lost."), HEAL_MS);
      }
    };
  }

  #lose(detail) {
    this.leave();
    this.#listener.lost({ kind: "call-lost", detail });
  }
}

async function within(promise, timeoutMs, signal) {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const over = new Promise((_, reject) => {
    limit.addEventListener("abort", () => {
      reject(new LinkError({ kind: "call-failed", detail: `No connection within ${timeoutMs / 1000} s.` }));
    });
  });
  await Promise.race([promise, over]);
}
