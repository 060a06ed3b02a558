"""Chromium, driven by WebDriver over its HTTP protocol; the standard library alone."""
import base64
import http.client
import json
import re
import subprocess
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name of a reference to an element
KEYS = {"tab": "\ue004", "enter": "\ue007", "escape": "\ue00c", "control": "\ue009"}
# Runs in each page before its own code: what goes to the loudspeaker is also measured, with the seconds that the loudspeaker
# has played then, which no busy machine makes longer; so are the seconds of sound that are sent, and what is written against
# the page's policy is kept.
EAR = """
window.heard = {peak: 0, loudAt: 0, loudPlayed: 0, sent: 0};
window.violations = [];
document.addEventListener('securitypolicyviolation', (event) => window.violations.push(event.violatedDirective));
const connect = AudioNode.prototype.connect;
const ears = new WeakMap();
AudioNode.prototype.connect = function (to, ...rest) {
  if (to instanceof AudioDestinationNode) {
    if (!ears.has(to.context)) {
      const ear = new AnalyserNode(to.context, {fftSize: 1024});
      const values = new Float32Array(1024);
      setInterval(() => {
        ear.getFloatTimeDomainData(values);
        const peak = Math.max(...values.map(Math.abs));
        window.heard.peak = Math.max(window.heard.peak, peak);
        if (peak > 0.001) Object.assign(window.heard, {loudAt: performance.now(), loudPlayed: to.context.currentTime});
      }, 15);
      ears.set(to.context, ear);
      window.loudspeaker = to.context;
    }
    connect.call(this, ears.get(to.context));
  }
  return connect.call(this, to, ...rest);
};
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (text) {
  const event = JSON.parse(text);
  if (event.type === 'input_audio_buffer.append') window.heard.sent += atob(event.audio).length / 48000;
  return send.call(this, text);
};
"""


class Browser:
    """Of one window; quit() ends it.  `microphone` is a WAV file that it hears again and again."""

    def __init__(self, folder, microphone=None, size=(1280, 800), dark=False):
        self.session = None
        self._start_driver(folder)
        try:
            self._begin(folder, microphone, size, dark)
        except BaseException:
            self.quit()
            raise

    def _start_driver(self, folder):
        """It ends where the port that it has found free over IPv4 is taken over IPv6, as it may be beside other tests."""
        for _ in range(10):
            self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder)
            told = []
            for line in self.driver.stdout:
                told.append(line)
                if found := re.search(rb"on port (\d+)\.", line):
                    self.port = int(found[1])
                    return
            self.driver.wait(120)
            self.driver.stdout.close()
        raise AssertionError(f"chromedriver does not start: {told}")

    def _begin(self, folder, microphone, size, dark):
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", f"--user-data-dir={folder}/profile",
                     f"--window-size={size[0]},{size[1]}", "--autoplay-policy=no-user-gesture-required",
                     "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", "--lang=en-GB"]
        if microphone:
            arguments.append(f"--use-file-for-fake-audio-capture={microphone}")
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL"}, "timeouts": {"script": 120000, "pageLoad": 300000}, "goog:chromeOptions": {"args": arguments}}}})
        self.session = made["sessionId"]
        self.chrome("Page.addScriptToEvaluateOnNewDocument", source=EAR)
        self.look(size, dark)

    def look(self, size, dark):
        """As on a screen of this size, of a user who likes it light or dark."""
        self.chrome("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)
        self.chrome("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def quit(self):
        if self.session:
            self._ask("DELETE", f"/session/{self.session}")
        self.driver.terminate()
        self.driver.wait(120)
        self.driver.stdout.close()

    def _ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{path}: {value['error']}: {value['message'][:500]}")
        return value

    def do(self, method, path, **body):
        return self._ask(method, f"/session/{self.session}{path}", body if method == "POST" else None)

    def chrome(self, command, **parameters):
        return self.do("POST", "/goog/cdp/execute", cmd=command, params=parameters)

    def open(self, url):
        self.do("POST", "/url", url=url)

    def run(self, script, *arguments):
        """What the script's `return` gives."""
        return self.do("POST", "/execute/sync", script=script, args=list(arguments))

    def find(self, selector):
        return self.do("POST", "/element", using="css selector", value=selector)[ELEMENT]

    def text(self, selector):
        return self.do("GET", f"/element/{self.find(selector)}/text")

    def click(self, selector):
        self.do("POST", f"/element/{self.find(selector)}/click")

    def write(self, selector, text):
        element = self.find(selector)
        self.do("POST", f"/element/{element}/clear")
        self.do("POST", f"/element/{element}/value", text=text)

    def press(self, *keys):
        """All down, one after the other, then up."""
        keys = [KEYS.get(key, key) for key in keys]
        self.do("POST", "/actions", actions=[{"type": "key", "id": "keys", "actions": [
            *({"type": "keyDown", "value": key} for key in keys), *({"type": "keyUp", "value": key} for key in reversed(keys))]}])

    def label_and_role(self, element):
        return self.do("GET", f"/element/{element}/computedlabel"), self.do("GET", f"/element/{element}/computedrole")

    def focused(self):
        return self.do("GET", "/element/active")[ELEMENT]

    def log(self):
        """Of the console, since it was last asked for."""
        return self.do("POST", "/se/log", type="browser")

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.do("GET", "/screenshot")))

    def wait_for(self, condition, seconds=120):
        end = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > end:
                page = re.sub(r"\s+", " ", self.run("return document.body.innerText"))
                raise AssertionError(f"this did not come in {seconds} s; the page: {page}")
            time.sleep(0.05)
        return value
