// The `openai` package's realtime client for Node. It connects over TLS only.

import OpenAI, { toFile } from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { LISTENS_MS, STORY, TEXT, TOOL, must, peak, play, sleep, speak, until } from './stage.mjs';

const WEATHER = {
  type: 'function',
  name: 'get_weather',
  description: 'Tells the weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const HEARING = { transcription: { model: 'gpt-4o-mini-transcribe', language: 'en' } };

/** A connection with everything it was told. */
class Talk {
  events = [];
  failures = [];

  constructor(url) {
    const client = new OpenAI({ apiKey: 'none', baseURL: url });
    this.socket = new OpenAIRealtimeWS({ model: 'chorale' }, client);
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

  speak() { return speak((piece) => this.send('input_audio_buffer.append', { audio: piece.toString('base64') })); }

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

/** Without a session: a stream with its usage, a call and an answer with its output, a refusal by name. */
async function chat(url) {
  const client = new OpenAI({ apiKey: 'none', baseURL: url });
  const { type, ...described } = WEATHER;
  const tools = [{ type, function: described }];
  const messages = [{ role: 'user', content: TOOL }];
  const stream = await client.chat.completions.create({
    model: 'chorale', messages, stream: true, stream_options: { include_usage: true },
  });
  let written = '';
  let usage = null;
  for await (const chunk of stream) {
    written += chunk.choices[0]?.delta.content ?? '';
    usage = chunk.usage ?? usage;
  }
  must(written && usage.completion_tokens > 0, JSON.stringify(usage));
  const first = await client.chat.completions.create({ model: 'chorale', messages, tools });
  const message = first.choices[0].message;
  must(message.tool_calls?.length === 1, JSON.stringify(first));
  must(JSON.parse(message.tool_calls[0].function.arguments).city === 'Paris', JSON.stringify(message));
  const output = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'sunny, 21 degrees' };
  const then = await client.chat.completions.create({ model: 'chorale', messages: [...messages, message, output], tools });
  must(then.choices[0].message.content.includes('sunny'), JSON.stringify(then));
  const refused = await client.chat.completions.create({ model: 'chorale', messages, n: 2 }).catch((error) => error);
  must(refused.status === 400 && refused.param === 'n', JSON.stringify(refused));
  return `${written} / ${then.choices[0].message.content}`;
}

/** A text is spoken and heard again, whole and in a stream. */
async function speech(url) {
  const client = new OpenAI({ apiKey: 'none', baseURL: url });
  const spoken = await client.audio.speech.create({ model: 'chorale', voice: 'alloy', input: TEXT });
  const file = await toFile(Buffer.from(await spoken.arrayBuffer()), 'question.mp3');
  const heard = await client.audio.transcriptions.create({ model: 'chorale', file, language: 'en' });
  must(heard.text.includes('capital of France'), heard.text);
  let last = null;
  for await (const event of await client.audio.transcriptions.create({ model: 'chorale', file, stream: true })) last = event;
  must(last.type === 'transcript.text.done', JSON.stringify(last));
  return heard.text;
}

/** Vectors, and the list of models. */
async function embed(url) {
  const client = new OpenAI({ apiKey: 'none', baseURL: url });
  const input = ['the weather in Paris', 'how is the weather in Paris', 'a king in a castle'];
  const { data } = await client.embeddings.create({ model: 'chorale', input });
  const like = (n) => data[0].embedding.reduce((sum, x, at) => sum + x * data[n].embedding[at], 0);
  must(like(1) > like(2), `${like(1)} ${like(2)}`);
  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  must(models.includes('chorale'), models.join());
  return `${like(1).toFixed(2)} > ${like(2).toFixed(2)} / ${models.join()}`;
}

await play(['openai', 'ws'], { text, audio, tool, interrupt, again, odd, chat, speech, embed });
