// The browser's own `EventSource` and `fetch`: a page that needs nothing else to write and to read.

import { LISTENS_MS, STORY, TEXT, TOOL, WEATHER, bytesOf, joined, must, peak, sleep, until } from './script.mjs';

const HEARD = [
  'session.created', 'session.updated', 'conversation.item.truncated', 'response.created', 'response.output_text.delta',
  'response.output_audio.delta', 'response.function_call_arguments.done', 'response.done', 'error', 'chorale.gap',
];

/** A session with what it was told. */
class Talk {
  events = [];
  failures = [];
  last = '';

  constructor(url) { this.url = url; }

  static async open(url, session, sound = false) {
    const talk = new Talk(url);
    const opened = await talk.ask('POST', '/sessions', { model: 'chorale', session: { type: 'realtime', ...session } });
    must(opened.status === 201, `${opened.status}`);
    const { id, secret } = await opened.json();
    Object.assign(talk, { id, secret, sound });
    talk.watch('');
    await talk.until(() => talk.all('session.created').length, 'session.created');
    return talk;
  }

  /** Reads along behind an event. */
  watch(after) {
    const query = new URLSearchParams({ secret: this.secret, sound: this.sound, ...(after && { after }) });
    this.source = new EventSource(`${this.url}/sessions/${this.id}/events?${query}`);
    for (const type of HEARD) {
      this.source.addEventListener(type, (event) => {
        if (event instanceof MessageEvent) this.take(event);
      });
    }
  }

  take({ type, data, lastEventId }) {
    const event = JSON.parse(data);
    if (event.type !== type) this.failures.push(`${event.type} came as ${type}`);
    if (type === 'error') this.failures.push(data);
    this.last = lastEventId;
    this.events.push(event);
  }

  ask(method, path, body) {
    const headers = { 'Content-Type': 'application/json', ...(this.secret && { 'Chorale-Session-Secret': this.secret }) };
    return fetch(`${this.url}${path}`, { method, headers, body: body && JSON.stringify(body) });
  }

  async send(...events) {
    const answer = await this.ask('POST', `/sessions/${this.id}/events`, events);
    must(answer.status === 202, `${answer.status} ${await answer.text()}`);
  }

  async typed(text) {
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
    await this.send({ type: 'conversation.item.create', item }, { type: 'response.create' });
  }

  all(type) { return this.events.filter((event) => event.type === type); }

  async until(condition, what) { await until(condition, what, this.failures); }

  get written() { return this.all('response.output_text.delta').map((event) => event.delta).join(''); }

  /** Waits for so many responses; the last of them. */
  async done(count) {
    await this.until(() => this.all('response.done').length >= count, 'response.done');
    return this.all('response.done')[count - 1].response;
  }

  /** Ends the session; the browser comes back once, is told that nothing more comes, and stops by itself. */
  async close() {
    const ended = await this.ask('DELETE', `/sessions/${this.id}`);
    must(ended.ok, `${ended.status}`);
    await this.until(() => this.source.readyState === EventSource.CLOSED, 'the browser to stop');
  }
}

async function text(url) {
  const talk = await Talk.open(url, { output_modalities: ['text'] });
  await talk.typed(TEXT);
  const response = await talk.done(1);
  must(talk.written && response.output[0].content[0].text === talk.written, talk.written);
  await talk.close();
  return talk.written;
}

/** Written to, spoken back. */
async function audio(url) {
  const talk = await Talk.open(url, {}, true);
  await talk.typed(TEXT);
  const response = await talk.done(1);
  const sound = joined(talk.all('response.output_audio.delta').map((event) => bytesOf(event.delta)));
  must(peak(sound) > 1_000, 'silence');
  await talk.close();
  return `${sound.length} bytes / ${response.output[0].content[0].transcript}`;
}

async function tool(url) {
  const talk = await Talk.open(url, { output_modalities: ['text'], tools: [WEATHER], tool_choice: 'auto' });
  await talk.typed(TOOL);
  const call = (await talk.done(1)).output.at(-1);
  must(call.type === 'function_call' && JSON.parse(call.arguments).city === 'Paris', JSON.stringify(call));
  const output = { type: 'function_call_output', call_id: call.call_id, output: 'sunny, 21 degrees' };
  await talk.send({ type: 'conversation.item.create', item: output }, { type: 'response.create' });
  const answer = (await talk.done(2)).output[0].content[0].text;
  must(answer.includes('sunny'), answer);
  await talk.close();
  return `${call.arguments} / ${answer}`;
}

/** Cuts a spoken reply by hand where it was heard to, and asks on. */
async function interrupt(url) {
  const talk = await Talk.open(url, {}, true);
  await talk.typed(STORY);
  await talk.until(() => talk.all('response.output_audio.delta').length, 'sound');
  const [{ item_id: item, response_id: old }] = talk.all('response.output_audio.delta');
  await sleep(LISTENS_MS);
  await talk.send({ type: 'response.cancel' });
  must((await talk.done(1)).status_details.reason === 'client_cancelled', 'it was not cancelled');
  const pieces = () => talk.all('response.output_audio.delta').filter((event) => event.response_id === old).length;
  const had = pieces();
  await talk.send({ type: 'conversation.item.truncate', item_id: item, content_index: 0, audio_end_ms: LISTENS_MS });
  await talk.typed(TEXT);
  const answer = (await talk.done(2)).output[0].content[0].transcript;
  must(pieces() === had, 'the old reply went on');
  must(talk.all('conversation.item.truncated').length === 1, 'nothing was cut');
  must(answer.includes('capital of France'), answer);
  await talk.close();
  return answer;
}

/** Comes back as one who has seen the first words only: nothing is missing, nothing comes twice. */
async function again(url) {
  const talk = await Talk.open(url, { output_modalities: ['text'] });
  await talk.typed(TEXT);
  await talk.until(() => talk.written, 'words');
  talk.source.close();
  talk.watch(talk.last);
  await until(() => talk.source.readyState === EventSource.OPEN, 'the stream to be back');
  const response = await talk.done(1);
  must(response.output[0].content[0].text === talk.written, talk.written);
  const ids = talk.events.map((event) => event.event_id).filter((id, n, all) => all.indexOf(id) !== n);
  must(ids.length === 0, `${ids} came twice`);
  await talk.close();
  return talk.written;
}

/** What is wrong is told by statuses, with the code and the field. */
async function odd(url) {
  const talk = await Talk.open(url, {});
  const events = [{ type: 'input_audio_buffer.clear' }, { type: 'response.create', response: { max_output_tokens: -1 } }];
  const refused = await talk.ask('POST', `/sessions/${talk.id}/events`, events);
  const { error, accepted } = await refused.json();
  must(refused.status === 400 && accepted === 1 && error.param, JSON.stringify(error));
  const foreign = await fetch(`${url}/sessions/${talk.id}`, { headers: { 'Chorale-Session-Secret': 'another' } });
  must(foreign.status === 404, `${foreign.status}`);
  const stranger = new EventSource(`${url}/sessions/${talk.id}/events?secret=another`);
  await until(() => stranger.readyState === EventSource.CLOSED, 'a stranger to be turned away');
  await talk.close();
  return `${error.message}`;
}

export const scenarios = { text, audio, tool, interrupt, again, odd };
