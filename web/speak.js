// The panel that speaks a text: heard and seen while it is made, stopped, and kept as a file.

import { giveFile, isResting, setResting, setWords } from "./button.js";
import { ask } from "./server.js";
import { kRate, Player, SampleReader, wavOf } from "./sound.js";
import { Waveform } from "./waveform.js";

const seconds = (value) => `${value.toFixed(value < 10 ? 2 : 1)} s`;

export class SpeakPanel {
  #form = document.querySelector("#speak form");
  #text = document.getElementById("text");
  #voice = document.getElementById("voice");
  #stop = document.getElementById("stop");
  #save = document.getElementById("save");
  #told = document.getElementById("speak-told");
  #fault = document.getElementById("speak-fault");
  #player = new Player();
  #wave = new Waveform(document.getElementById("wave"));
  #pieces = [];
  #answer = null;  // the AbortController of the one that is being read
  #loading = "";   // what is told of a model whose voices are waited for
  #model;
  #manner;

  // `model` is the choice of what speaks, `manner` that of how.
  constructor(model, manner) {
    this.#model = model;
    this.#manner = manner;
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#speak();
    });
    this.#text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#form.requestSubmit();
    });
    this.#form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.stop();
    });
    this.#stop.addEventListener("click", () => {
      if (!isResting(this.#stop)) this.stop();
    });
    this.#save.addEventListener("click", () => giveFile(wavOf(this.#pieces), "speech.wav"));
    this.#player.onended = () => {
      if (!this.#answer) this.#wave.heardSeconds = Infinity;  // the last bar, too, which is no whole one
      this.#show();
    };
  }

  // `words` of a load that is waited for, or empty: it is over.
  tellLoading(words) {
    if (words || this.#told.textContent === this.#loading) setWords(this.#told, words);
    this.#loading = words;
  }

  tellFault(words) {
    setWords(this.#fault, words);
  }

  stop() {
    this.#answer?.abort();
    this.#answer = null;
    this.#player.stop();
    this.#show();
  }

  async #speak() {
    this.stop();
    this.#fault.textContent = "";
    if (!this.#text.value.trim()) {
      this.#fault.textContent = "Write something to be spoken first.";
      this.#text.focus();
      return;
    }
    this.#pieces = [];
    this.#wave.clear();
    const stopping = new AbortController();
    this.#answer = stopping;
    this.#told.textContent = this.#model.loading || "Waiting for the first sound…";
    this.#show();
    try {
      await this.#player.wake();
      await this.#read(stopping);
    } catch (error) {
      if (stopping.signal.aborted) return;
      this.#told.textContent = "";
      this.#fault.textContent = `This was not spoken: ${error.message}.`;
    }
    if (this.#answer === stopping) {
      this.#answer = null;
      if (!this.#player.isPlaying) this.#wave.heardSeconds = Infinity;  // all was heard before its end came
    }
    this.#show();
  }

  async #read(stopping) {
    const body = { model: this.#model.id, input: this.#text.value, response_format: "pcm", ...this.#manner.fields };
    if (this.#voice.value) body.voice = this.#voice.value;
    let began = performance.now();
    const reply = await ask("v1/audio/speech", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: stopping.signal,
    });
    const waited = Number(reply.headers.get("X-Syrinx-Waited") ?? 0);  // for the model to be loaded
    began += waited * 1000;
    const loaded = waited ? `Loaded in ${seconds(waited)}. ` : "";
    const bytes = reply.body.getReader();
    const reader = new SampleReader();
    let count = 0;
    let first = 0;
    for (let part = await bytes.read(); !part.done; part = await bytes.read()) {
      const samples = reader.read(part.value);
      if (stopping.signal.aborted) return;
      if (!count) {
        first = performance.now() - began;
        this.#told.textContent = `${loaded}First sound after ${Math.round(first)} ms.`;
        this.#follow();
      }
      count += samples.length;
      this.#pieces.push(samples);
      this.#player.play(samples);
      this.#wave.add(samples);
    }
    const took = (performance.now() - began) / 1000;
    const length = count / kRate;
    this.#told.textContent =
      `${loaded}First sound after ${Math.round(first)} ms. ${seconds(length)} of sound in ${seconds(took)}: ` +
      `a real-time factor of ${(took / length).toFixed(2)}.`;
  }

  // The heard part of the picture grows while it is played.
  #follow() {
    this.#show();
    if (!this.#answer && !this.#player.isPlaying) return;
    this.#wave.heardSeconds = this.#player.position;
    requestAnimationFrame(() => this.#follow());
  }

  #show() {
    const busy = Boolean(this.#answer) || this.#player.isPlaying;
    setResting(this.#stop, !busy);
    this.#save.disabled = Boolean(this.#answer) || this.#pieces.length === 0;
    this.#form.dataset.playing = this.#player.isPlaying;
  }
}
