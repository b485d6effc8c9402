{{/* The Job that keeps the cluster's keys and the agents' certificate in objects that pods mount (`gpu-agent keep`). */}}

{{/* "true" or "": the Job makes the certificate. */}}
{{- define "vcuda.keeper.certificate" -}}
{{- if and .Values.agent.enabled (eq (include "vcuda.tls.issuer" .) "job") }}true{{ end -}}
{{- end -}}

{{/* "true" or "": the Job fetches the cluster's keys. */}}
{{- define "vcuda.keeper.keys" -}}
{{- $account := .Values.auth.serviceAccount -}}
{{- if and .Values.agent.enabled $account.enabled (not $account.jwks) (not $account.configMap) }}true{{ end -}}
{{- end -}}

{{- define "vcuda.keeper" -}}
{{- include "vcuda.fullname" . }}-keeper
{{- end -}}

{{- define "vcuda.keeper.job" -}}
backoffLimit: 10
activeDeadlineSeconds: 600
template:
  metadata:
    labels:
      {{- include "vcuda.selector" . | nindent 6 }}
      tensor-fusion.ai/component: keeper
      {{- with .Values.commonLabels }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  spec:
    restartPolicy: OnFailure
    serviceAccountName: {{ include "vcuda.keeper" . }}
    enableServiceLinks: false
    {{- with .Values.image.pullSecrets }}
    imagePullSecrets:
      {{- range . }}
      - name: {{ . }}
      {{- end }}
    {{- end }}
    nodeSelector: {kubernetes.io/os: linux, kubernetes.io/arch: amd64}
    {{- with .Values.agent.tolerations }}
    tolerations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      # Who may read the token of the ServiceAccount.
      fsGroup: 65532
    containers:
      - name: keeper
        image: {{ include "vcuda.image" (dict "root" . "image" .Values.agent.image) }}
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        args:
          - keep
          {{- if include "vcuda.keeper.certificate" . }}
          - --certificate
          - {{ .Release.Namespace }}/{{ .Values.tls.secretName }}
          - --name
          - {{ include "vcuda.tls.name" . }}
          {{- range append .Values.tls.namespaces .Release.Namespace | uniq }}
          - --ca
          - {{ . }}/{{ $.Values.tls.caConfigMap }}
          {{- end }}
          {{- end }}
          {{- if include "vcuda.keeper.keys" . }}
          - --keys
          - {{ .Release.Namespace }}/{{ include "vcuda.agent" . }}-keys
          {{- end }}
        terminationMessagePolicy: FallbackToLogsOnError
        resources:
          requests: {cpu: 10m, memory: 16Mi}
          limits: {cpu: 500m, memory: 128Mi}
        securityContext:
          {{- include "vcuda.restricted" . | nindent 10 }}
{{- end -}}
