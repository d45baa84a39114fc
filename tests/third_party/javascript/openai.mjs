// The `openai` package's realtime client for Node. It connects over TLS only.

import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { scenarios as requests } from './requests.mjs';
import { HEARING, LISTENS_MS, STORY, TEXT, TOOL, WEATHER, must, peak, sleep, speak, until } from './script.mjs';
import { play } from './stage.mjs';

/** A connection with everything it was told. */
class Talk {
  events = [];
  failures = [];

  constructor(url, props = { model: 'chorale' }, apiKey = 'none') {
    this.socket = new OpenAIRealtimeWS(props, new OpenAI({ apiKey, baseURL: url }));
    this.socket.on('event', (event) => this.events.push(event));
    this.socket.on('error', (error) => this.failures.push(error.message));
  }

  static async open(url, session) {
    const talk = new Talk(url);
    await talk.until(() => talk.all('session.created').length, 'session.created');
    talk.send('session.update', { session: { type: 'realtime', ...session } });
    await talk.until(() => talk.all('session.updated').length, 'session.updated');
    return talk;
  }

  send(type, fields = {}) { this.socket.send({ type, ...fields }); }

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
    const deltas = this.all('response.output_audio.delta').filter((event) => event.response_id === responseId);
    return Buffer.concat(deltas.map((event) => Buffer.from(event.delta, 'base64')));
  }

  speak() { return speak((piece) => this.send('input_audio_buffer.append', { audio: Buffer.from(piece).toString('base64') })); }

  close() { this.socket.close(); }
}

async function text(url) {
  const talk = await Talk.open(url, { output_modalities: ['text'] });
  talk.typed(TEXT);
  talk.send('response.create');
  const response = await talk.done();
  const written = talk.all('response.output_text.delta').map((event) => event.delta).join('');
  must(written && response.output[0].content[0].text === written, `${written}`);
  talk.close();
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
  talk.close();
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
  talk.close();
  return `${call.arguments} / ${answer}`;
}

async function interrupt(url) {
  const talk = await Talk.open(url, { audio: { input: HEARING } });
  talk.typed(STORY);
  talk.send('response.create');
  await talk.until(() => talk.all('response.output_audio.delta').length, 'sound');
  const [first] = talk.all('response.output_audio.delta');
  await sleep(LISTENS_MS);
  const stop = talk.speak();
  const old = await talk.done();
  must(old.status_details.reason === 'turn_detected', JSON.stringify(old.status_details));
  const length = talk.sound(old.id).length;
  talk.send('conversation.item.truncate', { item_id: first.item_id, content_index: 0, audio_end_ms: LISTENS_MS });
  const next = await talk.done();
  stop();
  must(talk.sound(old.id).length === length, 'the old reply went on');
  talk.send('conversation.item.retrieve', { item_id: first.item_id });
  await talk.until(() => talk.all('conversation.item.retrieved').length, 'the item');
  const kept = talk.all('conversation.item.retrieved')[0].item.content[0].transcript;
  must(kept.length < old.output[0].content[0].transcript.length, 'nothing was cut');
  const answer = next.output[0].content[0].transcript;
  must(answer.includes('capital of France'), answer);
  talk.close();
  return `kept ${kept.length} characters / ${answer}`;
}

async function again(url) {
  await text(url);
  return text(url);
}

async function odd(url) {
  const tools = Array.from({ length: 60 }, (_, n) => ({ ...WEATHER, name: `tool_${n}`, description: 'd'.repeat(2_000) }));
  const formats = { input: { ...HEARING, format: { type: 'audio/pcma' } }, output: { format: { type: 'audio/pcmu' } } };
  const talk = await Talk.open(url, { tools, tool_choice: 'none', audio: formats, future: { x: 1 } });
  must(talk.all('session.updated')[0].session.tools.length === 60, 'tools are not echoed');
  for (const size of [1, 333, 7]) {
    talk.send('input_audio_buffer.append', { audio: Buffer.alloc(size, 0xd5).toString('base64') });
  }
  talk.send('input_audio_buffer.clear');
  await talk.until(() => talk.all('input_audio_buffer.cleared').length, 'the clearing');
  talk.typed(TEXT);
  talk.send('response.create', { response: { metadata: { a: 'b' }, max_output_tokens: 60 } });
  const response = await talk.done();
  must(response.metadata.a === 'b' && talk.sound(response.id).length > 4_000, JSON.stringify(response));
  talk.close();
  return response.output[0].content[0].transcript;
}

/** The line is cut in a reply; the package connects again by itself, and is told where the session is. */
async function resume(url) {
  const session = { id: null, last: null };
  const options = { headers: {} };
  const buildRealtimeURL = () => {
    const address = new URL(`${url.replace('https', 'wss')}/realtime?model=chorale`);
    if (session.id) address.searchParams.set('session_id', session.id);
    if (session.last) address.searchParams.set('after', session.last);
    return address;
  };
  const talk = new Talk(url, { model: 'chorale', reconnect: true, reconnectInitialDelay: 50, buildRealtimeURL, options });
  talk.socket.socket.on('upgrade', ({ headers }) => {
    session.id = headers['chorale-session-id'];
    options.headers['Chorale-Session-Secret'] = headers['chorale-session-secret'];
  });
  talk.socket.on('reconnecting', () => { session.last = talk.events.at(-1).event_id; });
  let came = 0;
  talk.socket.on('reconnected', () => { came += 1; });
  await talk.until(() => talk.all('session.created').length, 'session.created');
  talk.send('session.update', { session: { type: 'realtime', output_modalities: ['text'] } });
  talk.typed('Tell me a very long story about a king.');
  talk.send('response.create', { response: { max_output_tokens: 200 } });
  const deltas = () => talk.all('response.output_text.delta');
  for (const cuts of [1, 2]) {
    const had = deltas().length;
    await talk.until(() => deltas().length > had, 'words');
    talk.socket.socket.terminate();
    await talk.until(() => came === cuts, 'its return');
  }
  await talk.until(() => talk.all('response.done').length, 'response.done');
  const written = deltas().map((event) => event.delta).join('');
  must(talk.all('response.done')[0].response.output[0].content[0].text === written, 'something was lost or came twice');
  talk.close();
  return `${came} cuts, ${written.length} characters`;
}

/** A session that only writes down what is said, by a secret that was made for it. */
async function listen(url) {
  const client = new OpenAI({ apiKey: 'none', baseURL: url });
  const made = await client.realtime.clientSecrets.create({ session: { type: 'transcription', audio: { input: HEARING } } });
  must(made.value.startsWith('ek_') && made.session.type === 'transcription', JSON.stringify(made));
  const talk = new Talk(url, { intent: 'transcription' }, made.value);
  await talk.until(() => talk.all('session.created').length, 'session.created');
  must(talk.all('session.created')[0].session.type === 'transcription', 'another kind of session');
  const stop = talk.speak();
  const completed = () => talk.all('conversation.item.input_audio_transcription.completed');
  await talk.until(() => completed().length, 'the transcript');
  await sleep(LISTENS_MS);
  stop();
  must(!talk.events.some((event) => event.type.startsWith('response.')), 'it answers');
  const heard = completed().map((event) => event.transcript).join('');
  must(heard.includes('capital of France'), heard);
  talk.close();
  return heard;
}

await play(['openai', 'ws'], { text, audio, tool, interrupt, again, resume, odd, listen, ...requests });
