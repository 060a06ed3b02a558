// The page: the key, the voices, and the panels.

import { askJson, keepKey, onKeyWanted } from "./server.js";
import { ClonePanel } from "./clone.js";
import { DictatePanel } from "./dictate.js";
import { Manner } from "./manner.js";
import { ModelChoice } from "./models.js";
import { SpeakPanel } from "./speak.js";
import { StatePanel } from "./state.js";
import { TalkPanel } from "./talk.js";

const keyDialog = document.getElementById("key-dialog");
const keyField = document.getElementById("key");
const keyFault = document.getElementById("key-fault");

onKeyWanted(
  (why) =>
    new Promise((resolve) => {
      keyDialog.returnValue = "";
      keyField.value = keyFault.textContent = "";
      keyDialog.addEventListener(
        "close",
        () => {
          const given = keyDialog.returnValue === "use" && keyField.value.trim();
          if (given) keepKey(given);
          resolve(Boolean(given));
        },
        { once: true },
      );
      keyDialog.showModal();
      keyFault.textContent = why && `${why[0].toUpperCase()}${why.slice(1)}.`;
    }),
);

const languageNames = new Intl.DisplayNames([navigator.language, "en"], { type: "language" });

function languageName(code) {
  try {
    return languageNames.of(code);
  } catch {
    return code;
  }
}

// Grouped by their languages.
function showVoices(voices, chosen) {
  const select = document.getElementById("voice");
  const groups = new Map();
  for (const voice of voices) {
    const name = voice.language ? languageName(voice.language) : "Voices";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(voice);
  }
  select.replaceChildren(new Option("The server’s own", ""));
  for (const [name, members] of groups) {
    const group = document.createElement("optgroup");
    group.label = name;
    group.append(...members.map((voice) => new Option(voice.name, voice.id)));
    select.append(group);
  }
  select.value = voices.some((voice) => voice.id === chosen) ? chosen : "";
}

let speaking = [];  // models of /v1/models
let listed = null;  // the model whose voices were asked for last

const chosenModel = () => speaking.find((model) => model.id === speech.id);

function takeModels(models) {
  speaking = models.filter((model) => model.task === "text-to-speech");
  manner.show(chosenModel());
}

// Voices of the model that speaks, which loads it; the voice that was chosen stays chosen, unless another one is to be.
async function listVoices(wanted = "") {
  const model = (listed = speech.id);
  const answer = await askJson(`v1/audio/voices?model=${encodeURIComponent(model)}`);
  if (model !== speech.id) return;
  clonePanel.show(answer);
  showVoices(answer.voices, wanted || document.getElementById("voice").value);
  if (!chosenModel()?.loaded) takeModels((await askJson("v1/models")).data);  // now that it is
}

async function changeSpeech() {
  const model = speech.id;
  showVoices([], "");
  clonePanel.clear();
  manner.show(chosenModel());
  speakPanel.tellLoading(speech.loading);
  speakPanel.tellFault("");
  try {
    await listVoices();
  } catch ({ message }) {
    if (model === speech.id) speakPanel.tellFault(`The voices of ${model} are not known: ${message}.`);
    listed = null;
  }
  if (model === speech.id) speakPanel.tellLoading("");
}

const speech = new ModelChoice("speech-model", changeSpeech);
const dictateRecogniser = new ModelChoice("dictate-model");
const talkRecogniser = new ModelChoice("talk-model");
const clonePanel = new ClonePanel(speech, listVoices);
const manner = new Manner(languageName);
const speakPanel = new SpeakPanel(speech, manner);

// Shows the panels of what the server can do.
async function showModels() {
  const giveKey = document.getElementById("give-key");
  giveKey.hidden = true;
  try {
    const { data } = await askJson("v1/models");
    const hearing = data.filter((model) => model.task === "automatic-speech-recognition");
    speech.show(data.filter((model) => model.task === "text-to-speech"));
    takeModels(data);
    dictateRecogniser.show(hearing);
    talkRecogniser.show(hearing);
    document.getElementById("speak").hidden = !speaking.length;
    document.getElementById("dictate").hidden = !hearing.length;
    document.getElementById("talk").hidden = !hearing.length || !speaking.length;
    listed = null;
    if (speech.isLoaded) await listVoices();
    else showVoices([], "");
    document.getElementById("page-fault").textContent = "";
  } catch (fault) {
    giveKey.hidden = fault.status !== 401;
    document.getElementById("page-fault").textContent = `The models are not known: ${fault.message}.`;
  }
}

// A page that is opened loads no model: voices are listed once another request has.
function takeStates(modules) {
  for (const choice of [speech, dictateRecogniser, talkRecogniser]) choice.takeStates(modules);
  if (speech.isLoaded && listed !== speech.id) listVoices().catch(() => (listed = null));
}

document.getElementById("give-key").addEventListener("click", showModels);
new DictatePanel(dictateRecogniser);
new TalkPanel(talkRecogniser, speech);
new StatePanel(showModels, takeStates);
