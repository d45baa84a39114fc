// The stock gRPC-Web client for browsers (`@connectrpc/connect-web`), as a page uses it: it creates a session, watches it
// and sends events and sound. The service is known by its descriptor only.

import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Code, createClient } from '@connectrpc/connect';
import { createGrpcWebTransport } from '@connectrpc/connect-web';
import { HEARING, LISTENS_MS, STORY, TEXT, TOOL, WEATHER, bytesOf, joined, must, peak, sleep, speak, until } from './script.mjs';

/** The service, by its descriptors in base64. */
export const service = {
  describe(descriptors) {
    const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytesOf(descriptors)));
    this.sessions = files.getService('chorale.v1.Sessions');
  },
};

/** A session with everything it was told. */
class Talk {
  events = [];
  speech = [];
  failures = [];
  number = 0n;
  sending = Promise.resolve();

  static async open(url, session) {
    const talk = new Talk();
    const baseUrl = new URL(url).origin;
    talk.client = createClient(service.sessions, createGrpcWebTransport({ baseUrl }));
    talk.opened = await talk.client.create({ model: 'chorale', session: JSON.stringify({ type: 'realtime', ...session }) });
    talk.watch();
    await talk.until(() => talk.all('session.created').length, 'session.created');
    return talk;
  }

  get named() { return { sessionId: this.opened.sessionId, secret: this.opened.secret }; }

  /** Reads along from where it is, until `leave` or the end of the session. */
  watch() {
    const leaving = this.leaving = new AbortController();
    const messages = this.client.watch(
      { ...this.named, after: this.number, speech: true }, { signal: leaving.signal },
    );
    this.reading = (async () => {
      for await (const { number, message } of messages) {
        must(number === 0n || number === this.number + 1n, `${this.number} was followed by ${number}`);
        if (number) this.number = number;
        if (message.case === 'event') this.events.push(JSON.parse(message.value.json));
        if (message.case === 'speech') this.speech.push(message.value);
      }
    })().catch((error) => { if (!leaving.signal.aborted) this.failures.push(`${error}`); });
  }

  async leave() {
    this.leaving.abort();
    await this.reading;
  }

  async hand(fields) {
    try {
      const reply = await this.client.send({ ...this.named, ...fields });
      must(!reply.error, reply.error);
    } catch (error) {
      this.failures.push(`${error}`);
    }
  }

  send(type, fields = {}) {
    this.sending = this.sending.then(() => this.hand({ events: [JSON.stringify({ type, ...fields })] }));
  }

  typed(text) {
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
    this.send('conversation.item.create', { item });
  }

  all(type) { return this.events.filter((event) => event.type === type); }

  async until(condition, what) { await until(condition, what, this.failures); }

  /** The response that is done next. */
  async done() {
    const count = this.all('response.done').length;
    await this.until(() => this.all('response.done').length > count, 'response.done');
    return this.all('response.done')[count].response;
  }

  sound(responseId) {
    return joined(this.speech.filter((one) => one.responseId === responseId).map((one) => one.data));
  }

  /** What has been said goes in one request after the other: each takes what has gathered. */
  speak() {
    let gathered = [];
    return speak((piece) => {
      gathered.push(piece);
      if (gathered.length > 1) return;
      this.sending = this.sending.then(() => {
        const sound = joined(gathered);
        gathered = [];
        return this.hand({ sound });
      });
    });
  }

  async close() {
    await this.sending;
    await this.client.end(this.named);
    await this.reading;
    must(this.failures.length === 0, this.failures.join('; '));
  }
}

async function text(url) {
  const talk = await Talk.open(url, { output_modalities: ['text'] });
  talk.typed(TEXT);
  talk.send('response.create');
  const response = await talk.done();
  const written = talk.all('response.output_text.delta').map((event) => event.delta).join('');
  must(written && response.output[0].content[0].text === written, `${written}`);
  await talk.close();
  return written;
}

async function audio(url) {
  const talk = await Talk.open(url, { audio: { input: HEARING } });
  const stop = talk.speak();
  const response = await talk.done();
  stop();
  const [heard] = talk.all('conversation.item.input_audio_transcription.completed');
  must(heard.transcript.includes('capital of France'), heard.transcript);
  must(peak(talk.sound(response.id)) > 1_000, 'silence');
  await talk.close();
  return `${heard.transcript} / ${response.output[0].content[0].transcript}`;
}

async function tool(url) {
  const talk = await Talk.open(url, { output_modalities: ['text'], tools: [WEATHER], tool_choice: 'auto' });
  talk.typed(TOOL);
  talk.send('response.create');
  const call = (await talk.done()).output.at(-1);
  must(call.type === 'function_call' && JSON.parse(call.arguments).city === 'Paris', JSON.stringify(call));
  const output = { type: 'function_call_output', call_id: call.call_id, output: 'sunny, 21 degrees' };
  talk.send('conversation.item.create', { item: output });
  talk.send('response.create');
  const answer = (await talk.done()).output[0].content[0].text;
  must(answer.includes('sunny'), answer);
  await talk.close();
  return `${call.arguments} / ${answer}`;
}

async function interrupt(url) {
  const talk = await Talk.open(url, { audio: { input: HEARING } });
  talk.typed(STORY);
  talk.send('response.create');
  await talk.until(() => talk.speech.length, 'sound');
  await sleep(LISTENS_MS);
  const stop = talk.speak();
  const old = await talk.done();
  must(old.status_details.reason === 'turn_detected', JSON.stringify(old.status_details));
  const next = await talk.done();
  stop();
  const answer = next.output[0].content[0].transcript;
  must(answer.includes('capital of France'), answer);
  await talk.close();
  return answer;
}

/** Comes back as one who has seen the first words only: nothing is missing, nothing comes twice (`watch` looks). */
async function again(url) {
  const talk = await Talk.open(url, { output_modalities: ['text'] });
  talk.typed(TEXT);
  talk.send('response.create');
  await talk.until(() => talk.all('response.output_text.delta').length, 'words');
  await talk.leave();
  const first = talk.events.indexOf(talk.all('response.output_text.delta')[0]);
  talk.events.length = first + 1;
  talk.number = BigInt(talk.events[first].event_id.split('_').at(-1));
  talk.watch();
  await talk.until(() => talk.all('response.done').length, 'response.done');
  const [{ response }] = talk.all('response.done');
  const written = talk.all('response.output_text.delta').map((event) => event.delta).join('');
  must(response.output[0].content[0].text === written, `${written}`);
  await talk.close();
  return written;
}

/** What is wrong is told by statuses with our codes, and by errors of events. */
async function odd(url) {
  const talk = await Talk.open(url, {});
  const wrong = await talk.client.get({ ...talk.named, secret: 'x' }).then(() => null, (error) => error);
  must(wrong.code === Code.NotFound, `${wrong}`);
  must(wrong.metadata.get('chorale-code') === 'session_expired', 'no code of ours');
  const reply = await talk.client.send({ ...talk.named, events: ['{"type":"nope","event_id":"e1"}'] });
  must(JSON.parse(reply.error).error.event_id === 'e1' && reply.accepted === 0, reply.error);
  await talk.close();
  return wrong.rawMessage;
}

export const scenarios = { text, audio, tool, interrupt, again, odd };
