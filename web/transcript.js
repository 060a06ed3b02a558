// What was said, as a list: words come into a line while they are found, and stay when its turn is over.

export class Transcript {
  #list;
  #open = new Map();  // the lines whose turns are not over, by the id of their item

  constructor(list) {
    this.#list = list;
  }

  get text() {
    return [...this.#list.children].map((line) => line.textContent).join("\n");
  }

  clear() {
    this.#list.replaceChildren();
    this.#open.clear();
  }

  add(text, kind) {
    const line = document.createElement("li");
    line.dataset.kind = kind;
    line.textContent = text;
    this.#list.append(line);
    this.#list.scrollTop = this.#list.scrollHeight;
    return line;
  }

  // Returns the text of a turn that is over, else null.
  take(event) {
    const { type, item_id: id } = event;
    if (type === "conversation.item.input_audio_transcription.delta") {
      if (!this.#open.has(id)) this.#open.set(id, this.add("", "live"));
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
    for (const line of this.#open.values()) line.dataset.kind = "said";
    this.#open.clear();
  }

  #drop(id) {
    this.#open.get(id)?.remove();
    this.#open.delete(id);
  }
}
