// The page: the key, the voices, and the panels.

import { askJson, keepKey, onKeyWanted } from "./server.js";
import { ClonePanel } from "./clone.js";
import { DictatePanel } from "./dictate.js";
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

// Grouped by their languages; what was chosen stays chosen, unless another one is to be.
async function listVoices(wanted = "") {
  const select = document.getElementById("voice");
  const answer = await askJson("v1/audio/voices");
  const { voices } = answer;
  clonePanel.show(answer);
  const chosen = wanted || select.value;
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

const clonePanel = new ClonePanel(listVoices);
let recogniser = "";  // the name of the model that hears

// Shows the panels of what the server can do.
async function showModels() {
  const giveKey = document.getElementById("give-key");
  giveKey.hidden = true;
  try {
    const { data } = await askJson("v1/models");
    const speaks = data.some((model) => model.task === "text-to-speech");
    document.getElementById("speak").hidden = !speaks;
    recogniser = data.find((model) => model.task === "automatic-speech-recognition")?.id ?? "";
    document.getElementById("dictate").hidden = !recogniser;
    document.getElementById("talk").hidden = !recogniser || !speaks;
    if (speaks) await listVoices();
    document.getElementById("page-fault").textContent = "";
  } catch (fault) {
    giveKey.hidden = fault.status !== 401;
    document.getElementById("page-fault").textContent = `The models are not known: ${fault.message}.`;
  }
}

document.getElementById("give-key").addEventListener("click", showModels);
new SpeakPanel();
new DictatePanel(() => recogniser);
new TalkPanel(() => recogniser);
new StatePanel(showModels);
