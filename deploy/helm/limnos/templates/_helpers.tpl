{{- define "limnos.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "limnos.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "limnos.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "limnos.selector" . }}
{{- end }}

{{- define "limnos.account" -}}
{{ .Values.serviceAccount.name | default (include "limnos.name" .) }}
{{- end }}

{{- define "limnos.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "limnos.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "limnos.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Settings of every pod: the store's URL from its secret, the rest as the values say. */ -}}
{{- define "limnos.environment" -}}
- name: LIMNOS__DATABASE__URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.secret }}
      key: {{ .Values.database.key }}
- name: LIMNOS__DATABASE__POOL_MAX
  value: {{ .Values.database.poolMax | quote }}
- name: LIMNOS__STORAGE__WAREHOUSE
  value: {{ .Values.warehouse | quote }}
- name: LIMNOS__SERVER__DATA
  value: /var/lib/limnos
- name: LIMNOS__SERVER__LISTEN
  value: 0.0.0.0:8090
- name: LIMNOS__SERVER__HOSTS
  {{- $name := include "limnos.name" . }}
  {{- $port := eq (int .Values.service.port) 80 | ternary "" (printf ":%d" (int .Values.service.port)) }}
  {{- $inner := list }}
  {{- range list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) }}
  {{- $inner = append $inner (printf "%s%s" . $port) }}
  {{- end }}
  value: {{ concat .Values.hosts $inner | join "," | quote }}
- name: LIMNOS__SERVER__DRAIN_TIMEOUT_S
  value: {{ .Values.drainSeconds | quote }}
- name: LIMNOS__ACCESS__AUTHENTICATION
  value: token
{{- range $name, $value := .Values.environment }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "limnos.environmentFrom" -}}
{{- with .Values.environmentSecrets }}
envFrom:
  {{- range . }}
  - secretRef:
      name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "limnos.volumes" -}}
- name: data
  emptyDir: {}
- name: tmp
  emptyDir: {}
{{- end }}

{{- define "limnos.mounts" -}}
- name: data
  mountPath: /var/lib/limnos
- name: tmp
  mountPath: /tmp
{{- end }}
