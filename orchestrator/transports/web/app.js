/**
 * The page's composition root: buttons and keys in, links and views driven. The rules are in the files it puts together.
 */

import { Call } from "./call.js";
import { Composer } from "./composer.js";
import { EMPTY, LIMITS, isAnswering, missed, reduce, waiting } from "./conversation.js";
import { Drawer } from "./drawer.js";
import { Endpoint } from "./endpoint.js";
import { EventLog } from "./eventlog.js";
import { isHarmless, leavesText, mayPass } from "./faults.js";
import { TurnClock } from "./latency.js";
import { Line } from "./line.js";
import { keep, recall, storage } from "./memory.js";
import { creation, newId } from "./message.js";
import { Meters } from "./meters.js";
import { NOWHERE, after, isKnown, ticketOf } from "./place.js";
import { shortcutOf } from "./shortcuts.js";
import { Socket } from "./socket.js";
import { Sound } from "./sound.js";
import { View } from "./view.js";

const SESSION = {
  type: "realtime",
  audio: { input: { transcription: { model: "default" } } },
  chorale: { typed_turns: true, events: [] },
};

class App {
  #at = (id) => document.getElementById(id);
  #store = storage();
  #endpoint = new Endpoint(document.baseURI, this.#store);
  #conversation = EMPTY;
  #fault = null;
  #mode = null;
  #wanted = 0;
  #isGreeted = false;
  #place = NOWHERE;
  #returning = null;
  #dismissed = null;
  #sound = new Sound(this.#at("sound"), { fault: (fault) => this.#show(fault) });
  #turn = new TurnClock();
  #log = new EventLog();
  #view = new View(document);
  #meters = new Meters(
    this.#at("canvas"),
    () => this.#sound.levels,
    (levels, now) => this.#measure(levels, now),
  );
  #line = new Line({
    changed: (name) => this.#connectionChanged(name),
    event: (json) => this.#receive(json),
    sound: (stream) => this.#sound.play(stream),
    fault: (fault) => this.#show(fault),
    gaveUp: (fault) => this.#gaveUp(fault),
  });
  #drawer = new Drawer(document, this.#log, () => ({
    sessionId: this.#conversation.sessionId,
    linkKind: this.#line.isLive ? (this.#mode === "voice" ? "WebRTC call" : "WebSocket, text only") : "none",
    latency: this.#turn.last,
  }));

  start() {
    const does = { talk: () => this.#talk(), cancel: () => this.#hangUp(), "hang-up": () => this.#hangUp() };
    this.#at("talk").addEventListener("click", () => does[this.#at("talk").dataset.does]());
    this.#at("mute").addEventListener("click", () => this.#mute());
    this.#at("interrupt").addEventListener("click", () => this.#interrupt());
    this.#at("end").addEventListener("click", () => this.#hangUp());
    this.#at("alert").addEventListener("click", ({ target }) => this.#act(target.dataset.action));
    new Composer(this.#at("composer"), this.#at("message"), (text) => this.#write(text));
    this.#at("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#useKey();
    });
    document.addEventListener("keydown", (event) => this.#shortcut(event));
    document.addEventListener("visibilitychange", () => this.#seen());
    addEventListener("online", () => this.#line.hurry());
    addEventListener("pagehide", () => this.#leave());
    addEventListener("pageshow", ({ persisted }) => persisted && this.#comeBack());
    addEventListener("error", ({ error, message }) => {
      // What comes without an error object is a browser's remark about layout or a foreign script's fault.
      if (error) {
        this.#show({ kind: "page-fault", detail: message });
      }
    });
    addEventListener("unhandledrejection", ({ reason }) => this.#show({ kind: "page-fault", detail: String(reason) }));
    this.#at("key").value = this.#endpoint.key;
    this.#comeBack();
  }

  // ---- what the user does

  #talk() {
    this.#call(NOWHERE, false);
  }

  /** Calls the session of a place; a new one from nowhere. */
  async #call(place, isMuted) {
    this.#show(null);
    this.#wanted += 1;
    const wanted = this.#wanted;
    const fault = await this.#sound.open();
    if (this.#wanted !== wanted) {
      return;
    }
    this.#returning = null;
    if (fault !== null) {
      this.#gaveUp(fault);
      return;
    }
    this.#sound.mute(isMuted);
    this.#meters.start();
    this.#mode = "voice";
    this.#place = place;
    this.#line.dial((listener) => new Call(this.#endpoint, this.#sound.microphone, listener, ticketOf(this.#place)));
  }

  #writeMode() {
    this.#mode = "text";
    this.#line.dial((listener) => new Socket(this.#endpoint, listener, ticketOf(this.#place)));
  }

  /** Returns whether the message was taken. */
  #write(text) {
    if (waiting(this.#conversation).length >= LIMITS.waiting) {
      this.#show({ kind: "outbox-full" });
      return false;
    }
    this.#take({ type: "page.typed", id: newId(), text });
    this.#view.toEnd();
    if (this.#conversation.playing) {
      this.#sound.quiet();
    }
    if (this.#line.isLive && this.#isGreeted) {
      this.#sendTyped(this.#conversation.entries.at(-1));
    } else if (this.#line.state === "idle") {
      this.#writeMode();
    } else {
      this.#line.hurry();
    }
    return true;
  }

  #sendTyped(entry) {
    this.#turn.typed(performance.now());
    this.#send(creation(entry));
  }

  #interrupt() {
    if (!isAnswering(this.#conversation)) {
      return;
    }
    this.#turn.drop();
    if (this.#conversation.responseId !== null) {
      this.#send({ type: "response.cancel" });
    }
    if (this.#mode === "voice") {
      this.#send({ type: "output_audio_buffer.clear" });
      this.#sound.quiet();
    }
  }

  #mute() {
    this.#sound.mute(!this.#sound.isMuted);
    this.#render();
  }

  #hangUp() {
    this.#wanted += 1;
    this.#place = NOWHERE;
    this.#returning = null;
    this.#endpoint.hangUpLost();
    this.#line.stop();
    this.#mode = null;
    this.#show(null);
    this.#closeMicrophone();
  }

  #useKey() {
    this.#endpoint.key = this.#at("key").value.trim();
    this.#drawer.close();
    this.#at("talk").focus();
    this.#show(null);
    if (this.#line.state === "idle" && waiting(this.#conversation).length > 0) {
      this.#writeMode();
    }
  }

  /** A button of the alert, which vanishes with it: focus moves on to the talk button. */
  #act(action) {
    if (action === undefined) {
      return;
    }
    this.#dismissed = this.#fault?.kind ?? null;
    this.#fault = null;
    this.#at("talk").focus();
    if (action === "talk") {
      this.#closeMicrophone();
      this.#talk();
    } else if (action === "retry") {
      this.#line.hurry();
    } else if (action === "key") {
      this.#drawer.open("key");
    } else if (action === "sound") {
      this.#sound.play();
    }
    this.#render();
  }

  #shortcut(event) {
    const wish = shortcutOf(event);
    if (wish === "mute" && !this.#at("mute").hidden) {
      this.#mute();
    } else if (wish === "stop" && isAnswering(this.#conversation)) {
      this.#interrupt();
    } else if (wish === "stop" && this.#drawer.isOpen) {
      this.#drawer.close();
    }
  }

  /** The page goes away. It may be back in a moment, so that its session is not ended: the server holds it for a while. */
  #leave() {
    const { mode, isMuted } = this.#returning ?? { mode: this.#mode, isMuted: this.#sound.isMuted };
    this.#wanted += 1;
    this.#line.leave();
    this.#mode = null;
    this.#closeMicrophone();
    if (mode !== null && (ticketOf(this.#place) !== null || waiting(this.#conversation).length > 0)) {
      const { lostCall } = this.#endpoint;
      keep(this.#store, { mode, isMuted, place: this.#place, lostCall, conversation: this.#conversation }, Date.now());
    }
  }

  /** The page is there, for the first time or again: it goes on where it left. */
  #comeBack() {
    const kept = recall(this.#store, Date.now());
    if (kept !== null) {
      this.#conversation = kept.conversation;
      this.#place = kept.place;
      this.#endpoint.lose(kept.lostCall);
    }
    this.#render();
    if (kept?.mode === "voice") {
      this.#returning = kept; // until there is a microphone, which may take a question
      this.#call(kept.place, kept.isMuted);
    } else if (kept?.mode === "text") {
      this.#writeMode();
    }
  }

  #seen() {
    if (document.hidden) {
      this.#turn.drop();
    } else {
      this.#line.hurry();
    }
  }

  // ---- what the line does

  #connectionChanged(name) {
    if (name === "live") {
      this.#dismissed = null;
      this.#fault = this.#fault !== null && mayPass(this.#fault) ? null : this.#fault;
    } else {
      this.#isGreeted = false;
      this.#turn.drop();
      this.#sound.unplug();
      this.#take({ type: "page.ended" });
    }
    this.#render();
  }

  #receive(json) {
    let event;
    try {
      event = JSON.parse(json);
    } catch {
      event = null;
    }
    if (typeof event?.type !== "string") {
      this.#log.add("in", { type: "(no event)", text: json.slice(0, 200) }, Date.now());
      return;
    }
    this.#log.add("in", event, Date.now());
    if (!document.hidden) {
      this.#turn.serverEvent(event.type, performance.now());
    }
    if (isKnown(this.#place, event)) {
      return;
    }
    const isBack = event.type === "session.created" && event.session?.id === this.#place.sessionId;
    const isPlaced = this.#place.last !== null;
    this.#place = after(this.#place, event);
    this.#take(event);
    if (event.type === "session.created") {
      this.#greet(isBack && isPlaced);
    } else if (event.type === "chorale.gap") {
      this.#askForMissed();
    } else if (event.type === "conversation.item.truncated") {
      this.#send({ type: "conversation.item.retrieve", item_id: event.item_id });
    } else if (event.type === "output_audio_buffer.started") {
      this.#sound.unquiet();
    } else if (event.type === "output_audio_buffer.cleared") {
      this.#sound.drained();
    } else if (event.type === "error" && !isHarmless(event.error?.code)) {
      const kind = event.error?.code === "session_expired" ? "session-ended" : "request-refused";
      this.#show({ kind, detail: event.error?.message });
    }
  }

  /** Sets up a session, or goes on with one that sends by itself what was missed; tells it what was typed meanwhile. */
  #greet(isBack) {
    const isText = this.#mode === "text";
    this.#isGreeted = true;
    if (!isBack) {
      this.#send({ type: "session.update", session: isText ? { ...SESSION, output_modalities: ["text"] } : SESSION });
      this.#askForMissed();
    }
    for (const entry of waiting(this.#conversation)) {
      this.#sendTyped(entry);
    }
  }

  /** Asks for the end of what was cut off, where the server no longer has the events in between. */
  #askForMissed() {
    for (const item_id of missed(this.#conversation)) {
      this.#send({ type: "conversation.item.retrieve", item_id });
    }
  }

  #gaveUp(fault) {
    const hasLine = this.#line.state !== "idle";
    this.#closeMicrophone();
    if (!hasLine) {
      if (this.#mode === "voice") {
        this.#place = NOWHERE; // writing begins a session of its own
        this.#endpoint.hangUpLost();
      }
      this.#mode = null;
    }
    if (leavesText(fault) && !hasLine) {
      this.#writeMode();
    }
    this.#show(fault);
  }

  #send(event) {
    if (this.#line.send(event)) {
      this.#log.add("out", event, Date.now());
    }
  }

  // ---- sound

  #closeMicrophone() {
    this.#meters.stop();
    this.#sound.close();
    this.#render();
  }

  #measure({ user, answer }, now) {
    this.#turn.userLevel(user, now);
    this.#turn.answerLevel(answer, now);
    this.#view.meter(user);
  }

  // ---- state and screen

  #take(event) {
    this.#conversation = reduce(this.#conversation, event, Date.now());
    this.#render();
  }

  /** Shows a fault, or none. One that the user has put away, or that is shown already, is not announced again. */
  #show(fault) {
    const isKnown = fault !== null && (fault.kind === this.#dismissed || fault.kind === this.#fault?.kind);
    if (!isKnown) {
      this.#fault = fault;
      this.#dismissed = null;
      this.#render();
    }
  }

  #render() {
    this.#view.render({
      conversation: this.#conversation,
      connection: this.#line.state,
      mode: this.#mode,
      isVoiceLive: this.#mode === "voice" && this.#line.isLive,
      isMuted: this.#sound.isMuted,
      fault: this.#fault,
    });
  }
}

new App().start();
