{{/* Certificates: who signs for the agents, and what they show. */}}

{{/* cert-manager, job, helm, existing, or "" without TLS. What helm made before stays helm's: the type of a Secret cannot change. */}}
{{- define "vcuda.tls.issuer" -}}
{{- if not .Values.tls.enabled -}}
{{- else if ne .Values.tls.issuer "auto" -}}
{{ .Values.tls.issuer }}
{{- else if .Capabilities.APIVersions.Has "cert-manager.io/v1/Certificate" -}}
cert-manager
{{- else if hasKey (dig "metadata" "annotations" dict (lookup "v1" "Secret" .Release.Namespace .Values.tls.secretName | default dict) | default dict) "vcuda.io/renew-after" -}}
helm
{{- else -}}
job
{{- end -}}
{{- end -}}

{{/* What the agents' certificate names, and sidecars ask for: whatever address a pod is sent to. */}}
{{- define "vcuda.tls.name" -}}
{{ printf "%s.%s.svc" (include "vcuda.agent" .) .Release.Namespace }}
{{- end -}}

{{/*
The CA and the agents' certificate, as a dict of base64 under the keys of their secrets: those that are
there, or new ones; the same wherever they are written in one rendering.  A certificate in its last 90
days is made anew, by the same CA.
*/}}
{{- define "vcuda.tls.make" -}}
{{- if not (hasKey .Values.tls "_made") -}}
{{- $name := include "vcuda.tls.name" . -}}
{{- $days := "vcuda.io/renew-after" -}}
{{- $oldCA := lookup "v1" "Secret" .Release.Namespace (printf "%s-ca" .Values.tls.secretName) -}}
{{- $old := lookup "v1" "Secret" .Release.Namespace .Values.tls.secretName -}}
{{- $ca := dict -}}
{{- if $oldCA -}}
{{- $ca = buildCustomCert (get $oldCA.data "tls.crt") (get $oldCA.data "tls.key") -}}
{{- else -}}
{{- $ca = genCA (printf "%s agents of %s" .Release.Name .Release.Namespace | trunc 63) 3650 -}}
{{- end -}}
{{- $cert := dict -}}
{{- $until := "" -}}
{{- if $old -}}{{- $until = get ($old.metadata.annotations | default dict) $days | default "" -}}{{- end -}}
{{- if and $oldCA $until (gt (int64 $until) (now | unixEpoch | int64)) -}}
{{- $cert = dict "Cert" (get $old.data "tls.crt" | b64dec) "Key" (get $old.data "tls.key" | b64dec) -}}
{{- else -}}
{{- $cert = genSignedCert $name nil (list $name) 825 $ca -}}
{{- $until = now | date_modify "17640h" | unixEpoch -}}
{{- end -}}
{{- $_ := set .Values.tls "_made" (dict "ca" $ca.Cert "caKey" $ca.Key "cert" $cert.Cert "key" $cert.Key "until" $until) -}}
{{- end -}}
{{- end -}}
