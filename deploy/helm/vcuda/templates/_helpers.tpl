{{/* Names, labels and what the cluster can do. */}}

{{- define "vcuda.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "vcuda.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "vcuda.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "vcuda.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Of the agents and their headless service. */}}
{{- define "vcuda.agent" -}}
{{- include "vcuda.fullname" . }}-agent
{{- end -}}

{{- define "vcuda.selector" -}}
app.kubernetes.io/name: {{ include "vcuda.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "vcuda.labels" -}}
{{ include "vcuda.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "vcuda.agent.selector" -}}
{{ include "vcuda.selector" . }}
tensor-fusion.ai/component: agent
{{- end -}}

{{/* (dict "root" $ "image" IMAGE): the whole reference. */}}
{{- define "vcuda.image" -}}
{{- $values := .root.Values.image -}}
{{- $name := printf "%s/%s" ($values.registry | trimSuffix "/") .image.repository -}}
{{- if .image.digest -}}
{{ $name }}@{{ .image.digest }}
{{- else -}}
{{ $name }}:{{ $values.tag | default .root.Chart.AppVersion }}{{ .image.suffix | default "" }}
{{- end -}}
{{- end -}}

{{/* The headless service's name, as pods of every namespace find it. */}}
{{- define "vcuda.service" -}}
{{- include "vcuda.agent" . }}.{{ .Release.Namespace }}.svc
{{- with .Values.service.clusterDomain }}.{{ . }}{{ end -}}
{{- end -}}

{{/* What pods are told when they name no agent. */}}
{{- define "vcuda.server" -}}
{{- if .Values.injector.server -}}
{{ .Values.injector.server }}
{{- else if .Values.agent.enabled -}}
{{ include "vcuda.service" . }}:{{ .Values.agent.ports.recv }}
{{- end -}}
{{- end -}}

{{- define "vcuda.serviceAccount" -}}
{{- if .Values.agent.serviceAccount.create -}}
{{ .Values.agent.serviceAccount.name | default (include "vcuda.agent" .) }}
{{- else -}}
{{ .Values.agent.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* "true" or "": helm can ask a cluster (it cannot in `helm template` and most of GitOps). */}}
{{- define "vcuda.online" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}true{{ end -}}
{{- end -}}

{{- define "vcuda.runtimeClass" -}}
{{- if eq .Values.agent.driver "nvidia" -}}
{{- if ne .Values.agent.runtimeClassName "auto" -}}
{{ .Values.agent.runtimeClassName }}
{{- else if or (not (include "vcuda.online" .)) (lookup "node.k8s.io/v1" "RuntimeClass" "" "nvidia") -}}
nvidia
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (dict "root" $ "enabled" VALUE): "true" or ""; auto: if there is the Prometheus Operator. */}}
{{- define "vcuda.monitored" -}}
{{- $has := .root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1" -}}
{{- if and .root.Values.agent.enabled (or (eq (toString .enabled) "true") (and (eq (toString .enabled) "auto") $has)) }}true{{ end -}}
{{- end -}}

{{/* The API version of Kubernetes' own mutating policy here, or "". */}}
{{- define "vcuda.map.version" -}}
{{- $have := .Capabilities.APIVersions -}}
{{- range list "v1" "v1beta1" "v1alpha1" -}}
{{- if $have.Has (printf "admissionregistration.k8s.io/%s/MutatingAdmissionPolicy" .) }}{{ . }} {{ end -}}
{{- end -}}
{{- end -}}

{{/* mutatingpolicy, clusterpolicy, map, or "" where the cluster has none of them. */}}
{{- define "vcuda.engine" -}}
{{- $have := .Capabilities.APIVersions -}}
{{- if not .Values.injector.enabled -}}
{{- else if ne .Values.injector.engine "auto" -}}
{{ .Values.injector.engine }}
{{- else if $have.Has "policies.kyverno.io/v1/MutatingPolicy" -}}
mutatingpolicy
{{- else if $have.Has "kyverno.io/v1/ClusterPolicy" -}}
clusterpolicy
{{- else if include "vcuda.map.version" . -}}
map
{{- end -}}
{{- end -}}

{{/* "true" or "": sidecars are native. */}}
{{- define "vcuda.native" -}}
{{- $can := semverCompare ">=1.29-0" .Capabilities.KubeVersion.Version -}}
{{- if and $can (ne (toString .Values.injector.nativeSidecar) "false") }}true{{ end -}}
{{- end -}}

{{/* The token: given, as it was, or a new one; the same wherever it is written in one rendering. */}}
{{- define "vcuda.token" -}}
{{- if not (hasKey .Values.auth "_token") -}}
{{- $old := lookup "v1" "Secret" .Release.Namespace .Values.auth.secretName -}}
{{- $kept := "" -}}
{{- if $old }}{{ $kept = get ($old.data | default dict) "token" | b64dec }}{{ end -}}
{{- $_ := set .Values.auth "_token" (.Values.auth.token | default $kept | default (randAlphaNum 40)) -}}
{{- end -}}
{{- .Values.auth._token -}}
{{- end -}}

{{/* Fits Pod Security "restricted". */}}
{{- define "vcuda.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}
