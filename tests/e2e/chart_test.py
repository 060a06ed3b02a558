"""packaging/scale/chart: rendered by the real helm, checked against the schemas of Kubernetes, by HAProxy and by the server's own settings."""
import json
import os
import pathlib
import re
import subprocess
import unittest

import kubernetes_validate
import yaml

from program import Program
from server import ENGLISH, Server

SCALE = pathlib.Path(__file__).resolve().parents[2] / "packaging/scale"
HELM = os.environ["SYRINX_HELM"]
KUBERNETES = "1.34"


def helm(*arguments):
    return subprocess.run([HELM, *map(str, arguments)], capture_output=True, text=True, check=False)


def rendering(values):
    """With values by their dotted names; a key's secret beside them, as a server that is reached from elsewhere asks for one."""
    named = {"apiKeys.secret": "keys", **values}
    options = [option for name, value in named.items() for option in ("--set-json", f"{name}={json.dumps(value)}")]
    return helm("template", "speech", SCALE / "chart", "--kube-version", KUBERNETES + ".0", *options)


class Chart(Program):
    def objects(self, values=None):
        """By kind and name."""
        done = rendering(values or {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout) if each}

    def check_refused(self, words, values):
        done = rendering(values)
        self.assertNotEqual(done.returncode, 0, values)
        self.assertIn(words, done.stderr)

    def settings(self, objects):
        """What the server takes of the rendered file, by name."""
        path = self.folder / "syrinx.toml"
        path.write_text(objects["ConfigMap", "speech-syrinx"]["data"]["syrinx.toml"])
        status, printed, errors = self.run_it("serve", "--config", path, "--print-config")
        self.assertEqual(status, 0, errors)
        return dict(re.findall(r"^(\w+) = (.*)$", printed.decode(), re.MULTILINE))

    def test_helm_finds_no_fault(self):
        done = helm("lint", "--strict", SCALE / "chart", "--set", "apiKeys.secret=keys")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_kubernetes_takes_what_it_renders(self):
        for values in ({}, {"autoscaling.enabled": True}, {"front.tlsSecret": "tls", "front.service.type": "LoadBalancer"},
                       {"models.claim": "models", "models.pull": [], "front.connectionsPerAddress": 0},
                       {"imagePullSecrets": [{"name": "mine"}], "podAnnotations.a": "b", "nodeSelector.speech": "yes",
                        "tolerations": [{"key": "speech", "operator": "Exists"}]}):
            objects = self.objects(values)
            self.assertGreaterEqual(len(objects), 8)
            for each in objects.values():
                kubernetes_validate.validate(each, KUBERNETES, strict=True)

    def test_a_selector_finds_its_pods(self):
        objects = self.objects({"autoscaling.enabled": True})
        for service, deployment in (("speech-syrinx", "speech-syrinx-front"), ("speech-syrinx-pods", "speech-syrinx")):
            pod = objects["Deployment", deployment]["spec"]["template"]
            selector = objects["Service", service]["spec"]["selector"]
            self.assertLessEqual(selector.items(), pod["metadata"]["labels"].items())
            budget = objects["PodDisruptionBudget", deployment]["spec"]
            self.assertEqual(budget["selector"]["matchLabels"], selector)
            self.assertEqual(objects["Deployment", deployment]["spec"]["selector"]["matchLabels"], selector)
            port = objects["Service", service]["spec"]["ports"][0]["targetPort"]
            self.assertIn(port, [each["name"] for each in pod["spec"]["containers"][0]["ports"]])
        self.assertEqual(objects["HorizontalPodAutoscaler", "speech-syrinx"]["spec"]["scaleTargetRef"]["name"], "speech-syrinx")
        self.assertNotIn("replicas", objects["Deployment", "speech-syrinx"]["spec"])

    def test_the_server_takes_its_settings_and_gets_the_time_to_drain(self):
        objects = self.objects({"settings.cors_origins": ["https://a.example", "https://b.example"], "settings.drain_timeout_s": 70.5,
                                "settings.recognition_heartbeat": True, "settings.max_connections": 12345})
        settings = self.settings(objects)
        self.assertEqual((settings["host"], settings["port"], settings["max_connections_per_address"]), ('"0.0.0.0"', "8080", "12345"))
        self.assertEqual(settings["cors_origins"], '["https://a.example", "https://b.example"]')
        self.assertEqual((settings["drain_timeout_s"], settings["recognition_heartbeat"]), ("70.5", "true"))
        pod = objects["Deployment", "speech-syrinx"]["spec"]["template"]["spec"]
        server = pod["containers"][0]
        waited = float(server["lifecycle"]["preStop"]["exec"]["command"][1])
        self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], waited + 70.5 + 10)
        at = {mount["mountPath"]: mount["name"] for mount in server["volumeMounts"]}
        self.assertEqual(pathlib.PurePath(settings["api_key_file"].strip('"')), pathlib.PurePath("/etc/syrinx/keys/api_keys"))
        self.assertEqual(at["/etc/syrinx/keys"], "keys")
        self.assertIn(server["args"][-1], at)
        self.assertEqual([each["args"] for each in pod["initContainers"]], [["pull", "kokoro"], ["pull", "whisper-base"]])

    def test_a_setting_may_be_in_any_language(self):
        told = 'Antworte höflich, sage "du"; 日本語'
        objects = self.objects({"settings.upstream": "http://ollama:11434/v1", "settings.upstream_instructions": told})
        self.assertEqual(json.loads(self.settings(objects)["upstream_instructions"]), told)

    def test_its_settings_are_the_programs(self):
        """With the kinds and limits of docs/server.md, whose table is the program's."""
        def kind(words):
            number = re.fullmatch(r"a (whole )?number from (\S+) to (\S+)", words)
            if number:
                return {"type": "integer" if number[1] else "number", "minimum": json.loads(number[2]), "maximum": json.loads(number[3])}
            if words.startswith("one of "):
                named, empty, _ = words.removeprefix("one of ").partition(", or an empty text")
                return {"enum": ([""] if empty else []) + named.split(", ")}
            return {"a text": {"type": "string"}, "true or false": {"type": "boolean"}}.get(words) or {"type": "array", "items": {"type": "string"}}

        page = (SCALE.parents[1] / "docs/server.md").read_text().split("\n## Settings\n")[1].split("\n## ")[0]
        table = {name: kind(words) for name, words in re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \|", page, re.MULTILINE)}
        schema = json.loads((SCALE / "chart/values.schema.json").read_text())["properties"]["settings"]["properties"]
        its_own = {name for name, values in schema.items() if values is False}
        self.assertEqual(its_own, {"host", "port", "api_keys", "api_key_file", "max_connections_per_address", "tls_certificate", "tls_key",
                                   "tls_self_signed"})
        self.assertEqual(schema, {**table, **dict.fromkeys(its_own, False)})

    def test_pods_pull_whatever_the_catalogue_has(self):
        names = [model["name"] for model in json.loads(self.run_it("list", "--json")[1])]
        self.assertIn("pocket-tts:german", names)
        objects = self.objects({"models.pull": names})
        for each in objects.values():
            kubernetes_validate.validate(each, KUBERNETES, strict=True)
        pulls = objects["Deployment", "speech-syrinx"]["spec"]["template"]["spec"]["initContainers"]
        self.assertEqual([each["args"] for each in pulls], [["pull", name] for name in names])
        called = {each["name"] for each in pulls}
        self.assertEqual(len(called), len(names))
        for name in called:
            self.assertRegex(name, r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")  # a label of DNS, which the schema does not ask for

    def test_pods_may_do_nothing_but_their_work(self):
        container = (SCALE.parent / "container/Containerfile").read_text()
        objects = self.objects()
        for name in ("speech-syrinx", "speech-syrinx-front"):
            pod = objects["Deployment", name]["spec"]["template"]["spec"]
            self.assertIs(pod["automountServiceAccountToken"], False)
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            for each in pod["containers"] + pod.get("initContainers", []):
                context = each["securityContext"]
                self.assertEqual((context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"], context["capabilities"]),
                                 (False, True, {"drop": ["ALL"]}))
        user = objects["Deployment", "speech-syrinx"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
        self.assertIn(f"USER {user}\n", container)
        home = re.search(r"^ENV SYRINX_HOME=(.*)$", container, re.MULTILINE)[1]
        self.assertIn(home, [mount["mountPath"] for mount in objects["Deployment", "speech-syrinx"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]])

    def test_what_cannot_work_is_refused(self):
        self.check_refused("apiKeys.secret must name a Secret", {"apiKeys.secret": ""})
        self.assertEqual(self.settings(self.objects({"apiKeys.secret": "", "settings.allow_no_key": True}))["api_key_file"], '""')
        self.check_refused("minReplicas must not be more", {"autoscaling.enabled": True, "autoscaling.minReplicas": 11})
        self.check_refused("replicas", {"replicas": 0})
        self.check_refused("busyShare", {"autoscaling.busyShare": 1.5})
        self.check_refused("port", {"settings.port": 1})
        self.check_refused("kokro", {"kokro": 1})
        self.check_refused("max_conections", {"settings.max_conections": 5})
        self.check_refused("speech_slots", {"settings.speech_slots": "4"})
        self.check_refused("pull", {"models.pull": ["../../etc"]})

    def check_haproxy(self, values):
        folder = self.folder / "haproxy"
        folder.mkdir(exist_ok=True)
        text = self.objects(values)["ConfigMap", "speech-syrinx-front"]["data"]["haproxy.cfg"]
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / "front.pem.key", "-out", folder / "front.pem",
                               "-days", "2", "-subj", "/CN=localhost"], capture_output=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        path = folder / "haproxy.cfg"
        path.write_text(text.replace("/etc/haproxy/tls/", f"{folder}/"))
        done = subprocess.run(["haproxy", "-c", "-f", path], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("WARNING", done.stderr)
        return text

    def test_haproxy_finds_no_fault(self):
        self.assertNotIn(" ssl ", self.check_haproxy({"front.connectionsPerAddress": 0, "replicas": 100}))
        self.assertIn(" ssl crt /etc/haproxy/tls/front.pem ", self.check_haproxy({"front.tlsSecret": "tls", "autoscaling.enabled": True}))

    def test_the_front_asks_for_slots_as_the_file_beside_the_chart_does(self):
        """Line by line, but for who the servers are, how many, and the front's own address and end."""
        own = re.compile(r"^ *(#.*|server(-template)? .*|bind .*|retries .*|hard-stop-after .*|)$")

        def lines(text):
            text = re.sub(r"^(resolvers|frontend alive)\n?.*?\n\n", "", text, flags=re.MULTILINE | re.DOTALL)
            return [line.strip() for line in text.splitlines() if not own.match(line)]

        rendered = self.objects()["ConfigMap", "speech-syrinx-front"]["data"]["haproxy.cfg"]
        self.assertEqual(lines(rendered), lines((SCALE / "haproxy.cfg").read_text()))
        replicas = self.objects()["Deployment", "speech-syrinx"]["spec"]["replicas"]
        self.assertGreaterEqual(int(re.search(r"^ *retries (\d+)$", rendered, re.MULTILINE)[1]), replicas)
        self.assertEqual(rendered.count("_http._tcp.speech-syrinx-pods.default.svc.cluster.local "), 3)

    def test_its_version_is_the_programs(self):
        chart = yaml.safe_load((SCALE / "chart/Chart.yaml").read_text())
        self.assertIn(chart["appVersion"], self.run_it("--version")[1].decode().split())


class Autoscaling(Server):
    def test_recordings_that_have_all_they_may_have_add_pods(self):
        for settings, target in (({}, "2100m"), ({"settings.recognition_slots": 8, "settings.recognition_live_slots": 2}, "4200m"),
                                 ({"settings.recognition_slots": 2, "settings.recognition_live_slots": 9}, "700m")):
            done = rendering({"autoscaling.enabled": True, **settings})
            self.assertEqual(done.returncode, 0, done.stderr)
            scaler = next(each for each in yaml.safe_load_all(done.stdout) if each and each["kind"] == "HorizontalPodAutoscaler")
            self.assertEqual(scaler["spec"]["metrics"][1]["pods"]["target"]["averageValue"], target)

    def test_the_server_tells_the_metric_that_it_counts_by(self):
        done = rendering({"autoscaling.enabled": True, "autoscaling.busyShare": 0.5, "settings.speech_slots": 6,
                          "settings.speech_model": f"/models/{ENGLISH.name}", "settings.recognition_model": ""})
        self.assertEqual(done.returncode, 0, done.stderr)
        scaler = next(each for each in yaml.safe_load_all(done.stdout) if each and each["kind"] == "HorizontalPodAutoscaler")
        metric, load = scaler["spec"]["metrics"]
        self.assertEqual(metric["pods"]["target"]["averageValue"], "3000m")
        self.start_server()
        labels = metric["pods"]["metric"]["selector"]["matchLabels"]
        page = self.request("GET", "/metrics")[2].decode()
        told = {line.rpartition(" ")[0] for line in page.splitlines()}
        self.assertIn(f'{metric["pods"]["metric"]["name"]}{{model="{labels["model"]}",state="{labels["state"]}"}}', told)
        self.assertEqual(load["pods"]["target"]["averageValue"], "600m")
        self.assertIn(f'{load["pods"]["metric"]["name"]}{{model="{labels["model"]}"}}', told)


if __name__ == "__main__":
    unittest.main()
