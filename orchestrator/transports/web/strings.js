/**
 * Two strings, the user's and the assistant's, that swing with the level of each voice: the page's level meter.
 *
 * Draws on one canvas, only while somebody asks it to. With reduced motion the strings stay still and a bar along each
 * shows the level instead.
 */

const ATTACK = 0.5;
const DECAY = 0.12;
const STEPS = 96;

const VOICES = [
  { name: "user", color: "--user", baseline: 0.32, waves: 3, speed: 0.0052 },
  { name: "answer", color: "--answer", baseline: 0.68, waves: 2, speed: 0.0041 },
];

export class Strings {
  #canvas;
  #reduced;
  #shown = { user: 0, answer: 0 };

  constructor(canvas, reducedMotion) {
    this.#canvas = canvas;
    this.#reduced = reducedMotion;
  }

  /** Draws one picture; `levels` is `{user, answer}` in 0…1, `now` in milliseconds. */
  draw(levels, now) {
    const context = this.#sized();
    const style = getComputedStyle(this.#canvas);
    for (const voice of VOICES) {
      const shown = this.#shown[voice.name];
      const target = levels[voice.name];
      const next = shown + (target - shown) * (target > shown ? ATTACK : DECAY);
      this.#shown[voice.name] = next;
      context.strokeStyle = style.getPropertyValue(voice.color);
      if (this.#reduced.matches) {
        this.#bar(context, voice, next, style.getPropertyValue("--line"));
      } else {
        this.#string(context, voice, next, now);
      }
    }
  }

  /** The strings at rest. */
  rest() {
    this.#shown = { user: 0, answer: 0 };
    this.draw(this.#shown, 0);
  }

  #sized() {
    const canvas = this.#canvas;
    const ratio = globalThis.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.lineCap = "round";
    return context;
  }

  /** A string swings most in its middle and not at its ends; a quiet one is never quite straight. */
  #string(context, voice, level, now) {
    const [width, height] = [this.#canvas.clientWidth, this.#canvas.clientHeight];
    const swing = height * (0.02 + 0.18 * level ** 1.3);
    const phase = now * voice.speed;
    context.lineWidth = 1.5 + 1.5 * level;
    context.beginPath();
    for (let step = 0; step <= STEPS; step += 1) {
      const x = step / STEPS;
      const envelope = Math.sin(Math.PI * x) ** 1.4;
      const wave =
        Math.sin(2 * Math.PI * voice.waves * x + phase) + 0.45 * Math.sin(2 * Math.PI * (voice.waves + 2) * x - 1.7 * phase);
      context.lineTo(2 + x * (width - 4), height * voice.baseline + swing * envelope * wave);
    }
    context.stroke();
  }

  #bar(context, voice, level, ground) {
    const [width, height] = [this.#canvas.clientWidth, this.#canvas.clientHeight];
    const color = context.strokeStyle;
    context.lineWidth = 4;
    for (const [style, share] of [
      [ground, 1],
      [color, level],
    ]) {
      context.strokeStyle = style;
      context.beginPath();
      context.moveTo(3, height * voice.baseline);
      context.lineTo(3 + share * (width - 6), height * voice.baseline);
      context.stroke();
    }
  }
}
