/**
 * The box in which messages are written: Enter sends, Shift and Enter begins a line, and the box grows with its text.
 */

export class Composer {
  #box;

  /** `write(text)` returns whether the message was taken; the box is empty then. */
  constructor(form, box, write) {
    this.#box = box;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send(write);
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.#send(write);
      }
    });
    box.addEventListener("input", () => this.#fit());
  }

  #send(write) {
    const text = this.#box.value.trim();
    if (text !== "" && write(text)) {
      this.#box.value = "";
      this.#fit();
    }
  }

  #fit() {
    this.#box.style.height = "auto";
    this.#box.style.height = `${this.#box.scrollHeight}px`;
  }
}
