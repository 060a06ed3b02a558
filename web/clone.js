// The panel that makes voices of recordings: a file, or what is said into the microphone; and lists those that have been
// made, to choose or to delete.

import { isResting, setResting, setWords } from "./button.js";
import { loadCapture, openMicrophone } from "./listener.js";
import { ask } from "./server.js";
import { kRate, wavOf } from "./sound.js";
import { Waveform } from "./waveform.js";

const kMostSeconds = 30;  // of a recording; the server heeds no more

function release(microphone, context) {
  for (const track of microphone?.getTracks() ?? []) track.stop();
  context?.close();
}

export class ClonePanel {
  #panel = document.getElementById("clone");
  #name = document.getElementById("clone-name");
  #file = document.getElementById("clone-file");
  #record = document.getElementById("clone-record");
  #make = document.getElementById("clone-make");
  #list = document.getElementById("clones");
  #told = document.getElementById("clone-told");
  #fault = document.getElementById("clone-fault");
  #wave = new Waveform(document.getElementById("clone-wave"));
  #pieces = [];
  #microphone = null;
  #context = null;
  #attempt = 0;  // to record: what is still being opened for an older one is closed again
  #model;
  #onChanged;

  // `model` is the choice of what speaks; `onChanged`, given the voice that is to be chosen, resolves once show() has
  // been given the new list.
  constructor(model, onChanged) {
    this.#model = model;
    this.#onChanged = onChanged;
    this.#panel.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#upload();
    });
    this.#record.addEventListener("click", () => this.#press());
    this.#file.addEventListener("change", () => {
      this.#stop();
      this.#forget();
    });
  }

  #press() {
    if (isResting(this.#record)) return;
    if (this.#microphone) this.#stop();
    else this.#start();
  }

  // What /v1/audio/voices answers.
  show({ voices, uploads }) {
    this.#panel.hidden = !uploads;
    if (!uploads) this.#stop();
    const made = voices.filter((voice) => voice.created_at !== null);
    this.#list.replaceChildren(...made.map((voice) => this.#row(voice.id)));
  }

  // While another model's list is asked for.
  clear() {
    this.#list.replaceChildren();
  }

  #row(name) {
    const row = document.createElement("li");
    const label = document.createElement("span");
    label.textContent = name;
    const button = (words, action) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = words;
      made.setAttribute("aria-label", `${words} ${name}`);
      made.addEventListener("click", () => action(made));
      return made;
    };
    const remove = button("Delete", () => this.#delete(name, remove));
    remove.addEventListener("blur", () => this.#disarm(name, remove));
    row.append(
      label,
      button("Use", () => {
        document.getElementById("voice").value = name;
        this.#say(`${name} speaks from now on.`);
      }),
      remove,
    );
    return row;
  }

  #say(told, fault = "") {
    this.#told.textContent = told;
    this.#fault.textContent = fault;
  }

  #forget() {
    this.#pieces = [];
    this.#wave.clear();
    this.#say("");
  }

  async #start() {
    this.#forget();
    this.#file.value = "";
    setResting(this.#record, true);
    const attempt = ++this.#attempt;
    let microphone = null;
    let context = null;
    try {
      // As it is: what cleans speech for a call would be part of the voice.
      microphone = await openMicrophone({ echoCancellation: false, noiseSuppression: false, autoGainControl: false });
      context = new AudioContext();
      await context.resume();
      await loadCapture(context);
      if (attempt === this.#attempt) this.#listen(microphone, context);
      else release(microphone, context);
    } catch (fault) {
      release(microphone, context);
      if (attempt === this.#attempt) this.#say("", `Nothing was recorded: ${fault.message}.`);
    }
    setResting(this.#record, false);
    this.#showState();
  }

  #listen(microphone, context) {
    const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => this.#take(data);
    context.createMediaStreamSource(microphone).connect(capture);
    this.#microphone = microphone;
    this.#context = context;
    this.#say("Recording: read something aloud for 10 to 30 seconds.");
  }

  #take(samples) {
    if (!this.#microphone) return;
    this.#pieces.push(samples);
    this.#wave.add(samples);
    if (this.#seconds() >= kMostSeconds) this.#stop();
    else this.#showState();
  }

  #stop() {
    ++this.#attempt;
    if (!this.#microphone) return;
    release(this.#microphone, this.#context);
    this.#microphone = this.#context = null;
    this.#say(`${this.#seconds().toFixed(1)} s have been recorded.`);
    this.#showState();
  }

  #seconds() {
    return this.#pieces.reduce((sum, piece) => sum + piece.length, 0) / kRate;
  }

  #showState() {
    const recording = this.#microphone !== null;
    setWords(this.#record, recording ? `Stop recording (${Math.floor(this.#seconds())} s)` : "Record");
    this.#record.setAttribute("aria-label", recording ? "Stop recording" : "Record");  // the seconds are no part of its name
  }

  #missing() {
    if (!this.#name.value.trim()) return [this.#name, "Give the voice a name first."];
    if (!this.#file.files.length && !this.#pieces.length) return [this.#file, "Choose a recording, or record one, first."];
    return null;
  }

  async #upload() {
    if (isResting(this.#make)) return;
    this.#stop();
    const missing = this.#missing();
    if (missing) {
      this.#say("", missing[1]);
      missing[0].focus();
      return;
    }
    const name = this.#name.value.trim();
    const form = new FormData();
    form.append("model", this.#model.id);
    form.append("name", name);
    form.append("audio_sample", this.#file.files[0] ?? wavOf(this.#pieces), "sample.wav");
    setResting(this.#make, true);
    this.#say("The voice is being made…");
    try {
      await ask("v1/audio/voices", { method: "POST", body: form });
      this.#file.value = "";
      this.#name.value = "";
      this.#forget();
      await this.#listAnew(`${name} is made, and speaks from now on.`, name);
    } catch (fault) {
      this.#say("", `No voice was made: ${fault.message}.`);
    }
    setResting(this.#make, false);
  }

  // What has happened has, be the list there or not.
  async #listAnew(told, chosen) {
    try {
      await this.#onChanged(chosen);
      this.#say(told);
    } catch (fault) {
      this.#say(told, `The list of voices is an old one: ${fault.message}.`);
    }
  }

  #disarm(name, button) {
    if (button.dataset.asked !== "yes") return;
    delete button.dataset.asked;
    button.textContent = "Delete";
    button.setAttribute("aria-label", `Delete ${name}`);
    this.#say("");
  }

  // Only the second press in a row deletes.
  async #delete(name, button) {
    if (button.dataset.asked !== "yes") {
      button.dataset.asked = "yes";
      button.textContent = "Really delete";
      button.setAttribute("aria-label", `Really delete ${name}`);
      this.#say(`Press again to delete ${name}.`);
      return;
    }
    try {
      const model = encodeURIComponent(this.#model.id);
      await ask(`v1/audio/voices/${encodeURIComponent(name)}?model=${model}`, { method: "DELETE" });
      await this.#listAnew(`${name} is deleted.`);
      this.#name.focus();
    } catch (fault) {
      this.#disarm(name, button);
      this.#say("", `${name} was not deleted: ${fault.message}.`);
    }
  }
}
