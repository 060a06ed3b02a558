// How the chosen model speaks: its language, and instructions in words, shown where the model takes them.

export class Manner {
  #language = document.getElementById("speech-language");
  #instructions = document.getElementById("instructions");
  #nameOf;

  // `nameOf` gives a language's name by its code.
  constructor(nameOf) {
    this.#nameOf = nameOf;
  }

  // `model` of /v1/models; one that is not loaded does not tell what it takes.  What was chosen stays.
  show(model) {
    const takes = (field) => Boolean(model?.loaded) && !model.unsupported_parameters.includes(field);
    const languages = takes("language") && model.languages.length > 1 ? model.languages : [];
    const chosen = this.#language.value;
    this.#language.replaceChildren(new Option("The text’s own", ""), ...languages.map((code) => new Option(this.#nameOf(code), code)));
    this.#language.value = languages.includes(chosen) ? chosen : "";
    this.#language.parentElement.hidden = !languages.length;
    this.#instructions.parentElement.hidden = !takes("instructions");
  }

  // Fields of a request.
  get fields() {
    const fields = {};
    if (this.#language.value) fields.language = this.#language.value;
    const words = this.#instructions.value.trim();
    if (words && !this.#instructions.parentElement.hidden) fields.instructions = words;
    return fields;
  }
}
