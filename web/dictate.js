// The panel that writes what is said, while it is said.

import { isResting, setResting, setWords } from "./button.js";
import { Listener } from "./listener.js";
import { Transcript } from "./transcript.js";
import { Waveform } from "./waveform.js";

const kLastWordsMs = 15000;  // for the words of a turn that the user has ended

export const pcm = { type: "audio/pcm", rate: 24000 };

export class DictatePanel {
  #toggle = document.getElementById("dictate-toggle");
  #told = document.getElementById("dictate-told");
  #fault = document.getElementById("dictate-fault");
  #transcript = new Transcript(document.getElementById("dictated"));
  #wave = new Waveform(document.getElementById("dictate-wave"), { liveSeconds: 6 });
  #listener = new Listener({
    onSound: (samples) => this.#wave.add(samples),
    onEvent: (event) => this.#take(event),
    onEnd: (why) => this.#end(`Dictation has ended: ${why}.`),
  });
  #state = "off";  // or starting, on, ending
  #ending = 0;
  #turns = new Set();  // the items whose words are still to come
  #stateWords = "";    // what is told of the state, where no button's press is told of

  // `model` is the choice of the recogniser.
  constructor(model) {
    this.#toggle.addEventListener("click", () => this.#press(model));
    document.getElementById("dictate-clear").addEventListener("click", () => this.#clear());
    document.getElementById("dictate-copy").addEventListener("click", () => this.#copy());
    document.getElementById("dictate-save").addEventListener("click", () => this.#save());
  }

  #press(model) {
    if (isResting(this.#toggle)) return;
    if (this.#state === "off") this.#start(model);
    else this.#stop();
  }

  async #start(model) {
    this.#state = "starting";
    setResting(this.#toggle, true);
    this.#fault.textContent = "";
    this.#wave.clear();
    this.#turns.clear();
    setWords(this.#told, model.loading);
    try {
      const input = { format: pcm, transcription: { model: model.id }, turn_detection: { type: "server_vad" } };
      // The type is given from the start: no model that speaks is loaded for it.
      await this.#listener.start({ type: "transcription", audio: { input } }, { model: model.id, intent: "transcription" });
      this.#state = "on";
      this.#show("Listening: say something.");
    } catch (fault) {
      this.#end(`Dictation did not begin: ${fault.message}.`);
    }
  }

  // Ends the turn that is under way, if there is one, and waits for its words.
  #stop() {
    if (this.#state !== "on") return this.#end("");
    this.#state = "ending";
    this.#listener.closeMicrophone();
    this.#listener.send("input_audio_buffer.commit");
    this.#ending = setTimeout(() => this.#end(""), kLastWordsMs);
    this.#show("The last words are being written.");
  }

  #take(event) {
    if (event.type === "input_audio_buffer.speech_started") this.#show("Hearing you.");
    if (event.type === "input_audio_buffer.speech_stopped" && this.#state === "on") this.#show("Listening.");
    if (event.type === "input_audio_buffer.committed") this.#turns.add(event.item_id);
    const isOver = /transcription\.(completed|failed)$/.test(event.type);
    if (isOver) this.#turns.delete(event.item_id);
    this.#transcript.take(event);
    if (this.#state === "ending") {
      // A turn that had ended by itself leaves nothing to commit, which is an error, but its words still come.
      if ((isOver || event.type === "error") && this.#turns.size === 0) this.#end("");
    } else if (event.type === "error") {
      this.#fault.textContent = `${event.error.message}.`;
    }
  }

  #end(fault) {
    clearTimeout(this.#ending);
    this.#listener.stop();
    this.#transcript.settle();
    this.#state = "off";
    this.#fault.textContent = fault;
    this.#show("");
  }

  #show(words) {
    setResting(this.#toggle, false);
    setWords(this.#toggle, this.#state === "off" ? "Start dictation" : "Stop dictation");
    setWords(this.#told, words);
    this.#stateWords = words;
  }

  #clear() {
    this.#transcript.clear();
    setWords(this.#told, this.#stateWords);
  }

  async #copy() {
    if (!this.#transcript.text) {
      this.#told.textContent = "There is nothing to copy yet.";
      return;
    }
    try {
      await navigator.clipboard.writeText(this.#transcript.text);
      this.#told.textContent = "Copied.";
    } catch {
      this.#fault.textContent = "The browser does not let this page copy.";
    }
  }

  #save() {
    if (!this.#transcript.save("dictation.txt")) this.#told.textContent = "There is nothing to save yet.";
  }
}
