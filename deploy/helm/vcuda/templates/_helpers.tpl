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
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
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

{{/*
The cluster's domain: as given, or as the cluster's DNS or kubeadm says it, or "" where helm cannot ask.
*/}}
{{- define "vcuda.clusterDomain" -}}
{{- $domain := .Values.service.clusterDomain -}}
{{- if and (eq $domain "auto") .Values.injector.enabled (include "vcuda.online" .) -}}
{{- $corefile := dig "data" "Corefile" "" (lookup "v1" "ConfigMap" "kube-system" "coredns" | default dict) -}}
{{- $kubeadm := dig "data" "ClusterConfiguration" "" (lookup "v1" "ConfigMap" "kube-system" "kubeadm-config" | default dict) -}}
{{- $told := regexFind "(?m)^\\s*kubernetes\\s+[-a-z0-9.]+" $corefile | default (regexFind "(?m)^\\s*dnsDomain:\\s+[-a-z0-9.]+" $kubeadm) -}}
{{- $told | trim | regexFind "[-a-z0-9.]+$" | trimSuffix "." -}}
{{- else if ne $domain "auto" -}}
{{- $domain | trimSuffix "." -}}
{{- end -}}
{{- end -}}

{{/*
Where pods of every namespace find the agents.  The whole name with a dot behind it needs no search list, so
whatever ndots a pod has does not matter.  Where the domain is not known, it is the usual one.  (Not the short
name beside it: where ndots is small, a resolver may take 10 s to say that it knows no such name.)
*/}}
{{- define "vcuda.agents" -}}
{{- $short := printf "%s.%s.svc" (include "vcuda.agent" .) .Release.Namespace -}}
{{- $port := .Values.agent.ports.recv -}}
{{- $domain := include "vcuda.clusterDomain" . -}}
{{- if $domain -}}
{{ $short }}.{{ $domain }}.:{{ $port }}
{{- else if eq .Values.service.clusterDomain "auto" -}}
{{ $short }}.cluster.local.:{{ $port }}
{{- else -}}
{{ $short }}:{{ $port }}
{{- end -}}
{{- end -}}

{{/* What pods are told when they name no agent. */}}
{{- define "vcuda.server" -}}
{{- if .Values.injector.server -}}
{{ .Values.injector.server }}
{{- else if .Values.agent.enabled -}}
{{ include "vcuda.agents" . }}
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

{{/*
host, pod or auto, which is left where native sidecars are not: there each pod is looked at.  (Not
"vcuda.native": a sidecar may be a plain container by choice.)
*/}}
{{- define "vcuda.ipcMode" -}}
{{- $mode := .Values.injector.ipcMode -}}
{{- if and (eq $mode "auto") (semverCompare ">=1.29-0" .Capabilities.KubeVersion.Version) }}pod{{ else }}{{ $mode }}{{ end -}}
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

{{/* A namespace's own token, made of the release's: who has it knows no other one. Agents of another release know
     the one that they were given. */}}
{{- define "vcuda.token.of" -}}
{{- if and .root.Values.agent.enabled (ne .namespace .root.Release.Namespace) -}}
{{- printf "%s/%s" (include "vcuda.token" .root) .namespace | sha256sum | trunc 40 -}}
{{- else -}}
{{- include "vcuda.token" .root -}}
{{- end -}}
{{- end -}}

{{/* The agents' token file: TOKEN NAME DEVICE-BYTES SESSIONS. No namespace is called like the release's own tenant. */}}
{{- define "vcuda.tenants" -}}
{{ include "vcuda.token" . }} {{ printf "%s/%s" .Release.Namespace .Release.Name | trunc 63 }}
{{ range $namespace := without .Values.auth.namespaces .Release.Namespace -}}
{{- $limits := get $.Values.auth.limits $namespace | default dict -}}
{{ include "vcuda.token.of" (dict "root" $ "namespace" $namespace) }} {{ $namespace }} {{ $limits.memory | default 0 }} {{ $limits.sessions | default 0 | int }}
{{ end -}}
{{- end -}}

{{/* Of whom sees every tenant's sessions over HTTP, where there can be several: the name of the secret, else nothing. */}}
{{- define "vcuda.http.secret" -}}
{{- if and .Values.agent.enabled (or .Values.agent.networks .Values.auth.serviceAccount.enabled (and .Values.auth.enabled (not .Values.auth.existing))) -}}
{{- printf "%s-http" (include "vcuda.agent" .) -}}
{{- end -}}
{{- end -}}

{{/* Its token: as it was, or a new one. */}}
{{- define "vcuda.http.token" -}}
{{- $old := lookup "v1" "Secret" .Release.Namespace (include "vcuda.http.secret" .) -}}
{{- $kept := "" -}}
{{- if $old }}{{ $kept = get ($old.data | default dict) "token" | b64dec }}{{ end -}}
{{- $kept | default (randAlphaNum 40) -}}
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

{{/* A policy of another release sees the same pods, and the first one wins. */}}
{{- define "vcuda.alone" -}}
{{- if and (include "vcuda.engine" .) (include "vcuda.online" .) -}}
{{- $root := . -}}
{{- $have := .Capabilities.APIVersions -}}
{{- $kinds := list "policies.kyverno.io/v1/MutatingPolicy" "kyverno.io/v1/ClusterPolicy" -}}
{{- with include "vcuda.map.version" . | trim | splitList " " | first -}}
{{- $kinds = append $kinds (printf "admissionregistration.k8s.io/%s/MutatingAdmissionPolicy" .) -}}
{{- end -}}
{{- range $kinds -}}
{{- if $have.Has . -}}
{{- $kind := base . -}}
{{- range dig "items" list (lookup (dir .) $kind "" "" | default dict) -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $by := .metadata.annotations | default dict -}}
{{- $release := printf "%s/%s" (get $by "meta.helm.sh/release-namespace") (get $by "meta.helm.sh/release-name") -}}
{{- if and (hasSuffix "-inject" .metadata.name) (hasPrefix (printf "%s-" $root.Chart.Name) (get $labels "helm.sh/chart" | default "")) (ne $release (printf "%s/%s" $root.Release.Namespace $root.Release.Name)) -}}
{{- fail (printf "injector.enabled: the release %s injects pods of this cluster already (%s %s), and of two the first would win; set it to false here, and send pods to these agents by tensor-fusion.ai/server: %s" $release $kind .metadata.name (include "vcuda.agents" $root)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Where the agent of the pod's own node listens, as its pods and the injected ones see it. */}}
{{- define "vcuda.localSocket" -}}
/run/vcuda-local/{{ include "vcuda.agent" . }}.sock
{{- end -}}
