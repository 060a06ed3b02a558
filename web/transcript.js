// What was said, as lines.  Those that are complete stand in a log, which screen readers read aloud; those that grow word by
// word stand behind it, outside of what is read: each word would have them read all of the line again.

import { giveFile } from "./button.js";

const kSpeakers = { spoken: "Server: ", interrupted: "Server, interrupted: " };  // as page.css writes them

export class Transcript {
  #box;
  #log;
  #growing;
  #open = new Map();  // the lines whose turns are not over, by the id of their item

  // `box` holds a log with a list, and the list of the lines that grow.
  constructor(box) {
    this.#box = box;
    this.#log = box.querySelector("[role=log] ol");
    this.#growing = box.querySelector(":scope > ol");
  }

  get text() {
    return [...this.#box.querySelectorAll("li")]
      .map((line) => (kSpeakers[line.dataset.kind] ?? "") + line.textContent)
      .join("\n");
  }

  // As a file of that name; false where there is nothing.
  save(name) {
    const text = this.text;
    if (text) giveFile(new Blob([`${text}\n`], { type: "text/plain;charset=utf-8" }), name);
    return text !== "";
  }

  clear() {
    this.#log.replaceChildren();
    this.#growing.replaceChildren();
    this.#open.clear();
    this.#show();
  }

  add(text, kind) {
    return this.#append(this.#log, text, kind);
  }

  // A line that grows, until finish().
  begin(kind) {
    return this.#append(this.#growing, "", kind);
  }

  finish(line, kind) {
    line.dataset.kind = kind;
    if (line.parentElement !== this.#growing) return;
    this.#log.append(line);
    this.#show();
  }

  // Returns the text of a turn that is over, else null.
  take(event) {
    const { type, item_id: id } = event;
    if (type === "conversation.item.input_audio_transcription.delta") {
      if (!this.#open.has(id)) this.#open.set(id, this.begin("live"));
      this.#open.get(id).textContent += event.delta;
    }
    if (type === "conversation.item.input_audio_transcription.failed") this.#drop(id);
    if (type !== "conversation.item.input_audio_transcription.completed") return null;
    this.#drop(id);
    const words = event.transcript.trim();
    if (words) this.add(words, "said");
    return words;
  }

  // What has been written of turns whose end will not be told stays.
  settle() {
    for (const line of [...this.#growing.children]) this.finish(line, line.dataset.kind === "live" ? "said" : line.dataset.kind);
    this.#open.clear();
  }

  #append(list, text, kind) {
    const line = document.createElement("li");
    line.dataset.kind = kind;
    line.textContent = text;
    list.append(line);
    this.#show();
    return line;
  }

  #drop(id) {
    this.#open.get(id)?.remove();
    this.#open.delete(id);
    this.#show();
  }

  // The newest line is in sight; the keyboard reaches the lines, to scroll them, where there are some.
  #show() {
    if (this.#box.querySelector("li")) this.#box.tabIndex = 0;
    else this.#box.removeAttribute("tabindex");
    this.#box.scrollTop = this.#box.scrollHeight;
  }
}
