{{/* At most 48 characters, so that what is put behind it still makes a name. */}}
{{- define "syrinx.name" -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Of one part: dict "root" $ "part" "server". */}}
{{- define "syrinx.selector" -}}
app.kubernetes.io/name: syrinx
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "syrinx.labels" -}}
{{ include "syrinx.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* Pods of one part keep off each other's nodes where they can. */}}
{{- define "syrinx.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "syrinx.selector" . | nindent 8 }}
{{- end -}}

{{/* JSON's strings, numbers and lists of them are TOML's. */}}
{{- define "syrinx.toml" -}}
{{- if not (or .Values.apiKeys.secret .Values.settings.allow_no_key) -}}
{{- fail "apiKeys.secret must name a Secret with the clients' keys; settings.allow_no_key=true lets everybody in the cluster ask" -}}
{{- end -}}
host = "0.0.0.0"
port = 8080
{{- if .Values.apiKeys.secret }}
api_key_file = "/etc/syrinx/keys/{{ .Values.apiKeys.item }}"
{{- end }}
# All clients come through the front.
max_connections_per_address = {{ .Values.settings.max_connections }}
{{- range $name, $value := .Values.settings }}
{{ $name }} = {{ toJson $value }}
{{- end }}
{{- end -}}
