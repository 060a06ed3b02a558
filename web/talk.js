// The panel in which the server answers what is said, where a language model stands behind it, or else repeats it, in
// its voice.  Who speaks meanwhile silences it at once.

import { isResting, setResting, setWords } from "./button.js";
import { bytesOf, Listener } from "./listener.js";
import { askJson } from "./server.js";
import { Player, SampleReader } from "./sound.js";
import { pcm } from "./dictate.js";
import { Transcript } from "./transcript.js";
import { Waveform } from "./waveform.js";

const kAsking = "speak";  // the id of the events that ask for a response, by which their errors are known

export class TalkPanel {
  #toggle = document.getElementById("talk-toggle");
  #told = document.getElementById("talk-told");
  #fault = document.getElementById("talk-fault");
  #transcript = new Transcript(document.getElementById("talked"));
  #wave = new Waveform(document.getElementById("talk-wave"), { liveSeconds: 6 });
  #player = new Player();
  #listener = new Listener({
    onSound: (samples) => this.#wave.add(samples),
    onEvent: (event) => this.#take(event),
    onEnd: (why) => this.#end(`The talk has ended: ${why}.`),
  });
  #isOn = false;
  #answers = false;  // the server begins the responses by itself
  #response = null;  // the one that was asked for and is not done; its sound is played unless it was interrupted
  #line = null;      // of what is being spoken
  #item = null;      // of the answer that was begun last
  #next = "";        // what is to be spoken behind the one that is being given up

  // The choices of the recogniser, and of what speaks.
  constructor(recogniser, speech) {
    this.#toggle.addEventListener("click", () => this.#press(recogniser, speech));
    document.getElementById("talk-save").addEventListener("click", () => this.#save());
    this.#player.onended = () => {
      if (this.#response) return;
      this.#leaveLine();
      this.#show("Listening.");
    };
  }

  #press(recogniser, speech) {
    if (isResting(this.#toggle)) return;
    if (this.#isOn) this.#end("");
    else this.#start(recogniser, speech);
  }

  // A session's address names one model; the first ones of their kind do the rest.
  async #start(recogniser, speech) {
    this.#isOn = true;
    setResting(this.#toggle, true);
    this.#fault.textContent = "";
    this.#transcript.clear();
    this.#wave.clear();
    const named = [recogniser, speech].find((choice) => !choice.isFirst);
    const isSpoken = named !== recogniser || speech.isFirst;  // by what is chosen to speak
    const voice = isSpoken && document.getElementById("voice").value;
    setWords(this.#told, recogniser.loading || speech.loading);
    try {
      await this.#player.wake();
      this.#answers = (await askJson("ready")).answers;
      const turns = { type: "server_vad", create_response: this.#answers };
      const input = { format: pcm, transcription: { model: recogniser.id }, turn_detection: turns };
      await this.#listener.start({ type: "realtime", audio: { input, output: { format: pcm, ...(voice && { voice }) } } },
                                 { model: named?.id ?? "gpt-realtime" });
      this.#show(isSpoken ? "Listening: say something." : "Listening: say something. The server's first model speaks, as it hears by another one.");
    } catch (fault) {
      this.#end(`The talk did not begin: ${fault.message}.`);
    }
  }

  #take(event) {
    if (event.type === "input_audio_buffer.speech_started") this.#interrupt();
    if (event.type === "response.created") this.#begun(event.response.id);
    if (event.type === "response.output_item.added") this.#item = event.item.id;
    if (event.type === "response.output_audio_transcript.delta") this.#write(event);
    if (event.type === "response.output_audio.delta") this.#play(event);
    if (event.type === "response.done") this.#finished(event.response);
    if (event.type === "error") this.#takeError(event.error);
    const words = this.#transcript.take(event);
    if (words && !this.#answers) this.#speak(words);
  }

  #begun(id) {
    if (this.#answers) {
      this.#response = { id: "", reader: new SampleReader(), isHeard: true };
      this.#leaveLine();
      this.#show("Thinking.");
    }
    if (this.#response) this.#response.id = id;
  }

  // An answer's words, as they are spoken.
  #write({ response_id: id, delta }) {
    if (!this.#answers || id !== this.#response?.id || !this.#response.isHeard) return;
    this.#line ??= this.#transcript.begin("spoken");
    this.#line.textContent += delta;
    this.#show("Speaking: interrupt it by speaking.");
  }

  #finished({ status, status_details: details }) {
    if (status === "failed") this.#fault.textContent = `${details.error.message}.`;
    if (this.#line) this.#transcript.finish(this.#line, "spoken");  // it may still be interrupted while it is heard
    this.#done();
  }

  #takeError(error) {
    if (error.event_id === kAsking) this.#done();
    if (error.code !== "response_cancel_not_active") this.#fault.textContent = `${error.message}.`;
  }

  #interrupt() {
    this.#leaveLine(this.#player.isPlaying ? "interrupted" : "spoken");
    // The language model is told how much of its answer was heard.
    if (this.#player.isPlaying && this.#answers)
      this.#listener.send("conversation.item.truncate",
                          { item_id: this.#item, content_index: 0, audio_end_ms: Math.floor(1000 * this.#player.position) });
    this.#player.stop();
    this.#next = "";
    if (this.#response?.isHeard) {
      this.#response.isHeard = false;
      if (!this.#answers) this.#listener.send("response.cancel");  // the server ends its own by itself
    }
    this.#show("Hearing you.");
  }

  #leaveLine(kind = "spoken") {
    if (this.#line) this.#transcript.finish(this.#line, kind);
    this.#line = null;
  }

  #speak(words) {
    if (this.#response) {
      this.#next = words;
      return;
    }
    const input = [{ type: "message", role: "user", content: [{ type: "input_text", text: words }] }];
    this.#response = { id: "", reader: new SampleReader(), isHeard: true };
    this.#listener.send("response.create", { event_id: kAsking, response: { conversation: "none", input } });
    this.#line = this.#transcript.add(words, "spoken");
    this.#show("Speaking: interrupt it by speaking.");
  }

  #play({ response_id: id, delta }) {
    if (id === this.#response?.id && this.#response.isHeard) this.#player.play(this.#response.reader.read(bytesOf(delta)));
  }

  #done() {
    this.#response = null;
    const next = this.#next;
    this.#next = "";
    if (next) this.#speak(next);
    else if (!this.#player.isPlaying) this.#show(this.#isOn ? "Listening." : "");
  }

  #end(fault) {
    this.#isOn = false;
    this.#listener.stop();
    this.#player.stop();
    this.#transcript.settle();
    this.#response = this.#line = null;
    this.#next = "";
    this.#fault.textContent = fault;
    this.#show("");
  }

  #show(words) {
    setResting(this.#toggle, false);
    setWords(this.#toggle, this.#isOn ? "Stop talking" : "Start talking");
    setWords(this.#told, words);
  }

  #save() {
    if (!this.#transcript.save("conversation.txt")) this.#told.textContent = "There is nothing to save yet.";
  }
}
