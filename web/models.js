// A choice among the server's models of a task: a select, which is hidden where there is nothing to choose.

import { setWords } from "./button.js";

const kStates = {
  loaded: "",
  loading: ", loading",
  unloaded: ", loads at first use",
  failed: ", could not be loaded",
};

export class ModelChoice {
  #select;
  #row;
  #states = new Map();  // by the models' names

  // `id` of the select, whose parent is hidden with it.
  constructor(id, onChosen = () => {}) {
    this.#select = document.getElementById(id);
    this.#row = this.#select.parentElement;
    this.#select.addEventListener("change", onChosen);
  }

  // Models of /v1/models; the one that was chosen stays so.
  show(models) {
    const chosen = this.id;
    this.#states = new Map(models.map(({ id, loaded }) => [id, loaded ? "loaded" : "unloaded"]));
    this.#select.replaceChildren(...models.map(({ id }) => new Option(id, id)));
    if (this.#states.has(chosen)) this.#select.value = chosen;
    this.#row.hidden = models.length < 2;
    this.#name();
  }

  // The answer of /ready.
  takeStates(modules) {
    for (const { id, state } of modules) if (this.#states.has(id)) this.#states.set(id, state);
    this.#name();
  }

  #name() {
    for (const option of this.#select.options) setWords(option, option.value + (kStates[this.#states.get(option.value)] ?? ""));
  }

  // Empty where there is none.
  get id() {
    return this.#select.value;
  }

  get isFirst() {
    return this.#select.selectedIndex <= 0;
  }

  get isLoaded() {
    return this.#states.get(this.id) === "loaded";
  }

  // Told while a request waits; empty where the model is there.
  get loading() {
    return !this.id || this.isLoaded ? "" : `Loading ${this.id}…`;
  }
}
