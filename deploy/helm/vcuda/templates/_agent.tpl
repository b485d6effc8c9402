{{/* The agent's configuration and its pod, for either kind. */}}

{{- /* Whether programs may use NCCL: "true" or nothing. */ -}}
{{- define "vcuda.agent.nccl" -}}
{{- if eq (dig "nccl" "allowed" false (.Values.agent.config | default dict) | toString) "true" }}true{{ end -}}
{{- end }}

{{- /* Whether /dev/shm is a volume: the 64 MiB that a container has are two ranks' of NCCL, which fails behind them. */ -}}
{{- define "vcuda.agent.shm" -}}
{{- if and (include "vcuda.agent.nccl" .) (not .Values.agent.hostIPC) }}true{{ end -}}
{{- end }}

{{- define "vcuda.agent.config" -}}
driver: {{ .Values.agent.driver }}
ports:
  send: {{ .Values.agent.ports.send }}
  recv: {{ .Values.agent.ports.recv }}
  control: {{ .Values.agent.ports.control }}
{{- if .Values.agent.localSocket }}
# every address, and pods of this node by shared memory
listen: ",local://{{ include "vcuda.localSocket" . }}"
{{- else if .Values.agent.hostIPC }}
# every address, and pods of this node with hostIPC: a socket beside POSIX shared memory
listen: ",local://"
{{- end }}
drain_seconds: {{ .Values.agent.drainSeconds }}
grace: {{ .Values.agent.grace }}s
cache_dir: /var/cache/vcuda/modules
log: {{ .Values.agent.logLevel }}
{{- if .Values.auth.enabled }}
token_file: /etc/vcuda/token/{{ ternary "token" "tokens" .Values.auth.existing }}
{{- else if not (or .Values.auth.serviceAccount.enabled .Values.agent.networks) }}
insecure: true
{{- end }}
{{- if .Values.auth.serviceAccount.enabled }}
service_account:
  keys: /etc/vcuda/keys/jwks
  {{- with .Values.auth.serviceAccount.issuer }}
  issuer: {{ . | quote }}
  {{- end }}
  audience: {{ .Values.auth.serviceAccount.audience | quote }}
  tenant: {{ .Values.auth.serviceAccount.tenant }}
{{- end }}
{{- if include "vcuda.http.secret" . }}
http.token_file: /etc/vcuda/http/token
{{- end }}
{{- if .Values.tls.enabled }}
tls:
  cert: /etc/vcuda/tls/tls.crt
  key: /etc/vcuda/tls/tls.key
  {{- if include "vcuda.agent.peerCA" . }}
  peer_ca: /etc/vcuda/tls-ca/ca.crt
  peer_name: {{ include "vcuda.tls.name" . }}
  {{- end }}
{{- end }}
{{- if and .Values.agent.peers (not (hasKey .Values.agent.config "peers")) }}
# each address of the agents' service
peers: [{{ include "vcuda.agents" . | quote }}]
{{- end }}
{{- if not (or (hasKey .Values.agent.config "library_path") (hasKey .Values.agent.config "libraries")) }}
# where the variants of the image have CUDA's libraries
library_path: /opt/vcuda/cuda/lib
{{- end }}
{{- if include "vcuda.store" . }}
store:
  bytes: {{ .Values.store.bytes }}
  bytes_per_namespace: {{ .Values.store.bytesPerNamespace }}
  tensors_per_namespace: {{ .Values.store.tensorsPerNamespace }}
  pool_bytes: {{ .Values.store.poolBytes }}
  {{- with include "vcuda.store.registry" . }}
  registry: {{ . }}
  {{- end }}
  {{- with .Values.store.registryUser }}
  registry_user: {{ . | quote }}
  {{- end }}
  {{- if include "vcuda.store.secret" . }}
  registry_password_file: /etc/vcuda/store/password
  {{- end }}
{{- end }}
{{- with .Values.agent.networks }}
networks:
{{- range . }}
- token_file: /etc/vcuda/networks/{{ .name }}.token
{{- if or .password .user }}
  password_file: /etc/vcuda/networks/{{ .name }}.password
{{- end }}
{{ omit . "token" "password" "secretName" | toYaml | indent 2 }}
{{- end }}
{{- end }}
{{- with .Values.agent.config }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The Secret of one of agent.networks, by a dict with root and network. */}}
{{- define "vcuda.network.secret" -}}
{{- .network.secretName | default (printf "%s-network-%s" (include "vcuda.agent" .root) .network.name) -}}
{{- end -}}

{{/* "true" or "": a network's agents have the pod's address as their ID, by which they are found. */}}
{{- define "vcuda.network.node" -}}
{{- if and .Values.agent.networks (not (dig "store" "node" "" .Values.agent.config)) }}true{{ end -}}
{{- end -}}

{{/* "true" or "": agents know each other by the ConfigMap that the chart keeps beside them. */}}
{{- define "vcuda.agent.peerCA" -}}
{{- if and .Values.agent.peers (has (include "vcuda.tls.issuer" .) (list "job" "cert-manager" "helm")) }}true{{ end -}}
{{- end -}}

{{/* "true" or "": agents have tensors with names. */}}
{{- define "vcuda.store" -}}
{{- if ne (toString .Values.store.bytes) "0" }}true{{ end -}}
{{- end -}}

{{/* Where the index is; "": there is none. */}}
{{- define "vcuda.store.registry" -}}
{{- if .Values.store.redis.enabled -}}
tcp://{{ include "vcuda.fullname" . }}-redis.{{ .Release.Namespace }}.svc:6379
{{- else -}}
{{ .Values.store.registry }}
{{- end -}}
{{- end -}}

{{/* The Secret with its password; "": it has none. */}}
{{- define "vcuda.store.secret" -}}
{{- if .Values.store.redis.enabled -}}
{{ include "vcuda.fullname" . }}-redis
{{- else -}}
{{ .Values.store.registrySecret }}
{{- end -}}
{{- end -}}

{{/* Of the chart's own: as it was, or a new one. */}}
{{- define "vcuda.store.password" -}}
{{- $old := lookup "v1" "Secret" .Release.Namespace (printf "%s-redis" (include "vcuda.fullname" .)) -}}
{{- $kept := "" -}}
{{- if $old }}{{ $kept = get ($old.data | default dict) "password" | b64dec }}{{ end -}}
{{- .Values.store.redis.password | default $kept | default (randAlphaNum 40) -}}
{{- end -}}

{{/* Nodes with NVIDIA's GPUs, by what labels them. */}}
{{- define "vcuda.agent.nodes" -}}
# GPU Operator and NVIDIA's feature discovery
- matchExpressions: [{key: nvidia.com/gpu.present, operator: In, values: ["true"]}]
# node feature discovery: display controllers and 3D controllers of vendor 10de
- matchExpressions: [{key: feature.node.kubernetes.io/pci-10de.present, operator: In, values: ["true"]}]
- matchExpressions: [{key: feature.node.kubernetes.io/pci-0300_10de.present, operator: In, values: ["true"]}]
- matchExpressions: [{key: feature.node.kubernetes.io/pci-0302_10de.present, operator: In, values: ["true"]}]
# clouds
- matchExpressions: [{key: cloud.google.com/gke-accelerator, operator: Exists}]
- matchExpressions: [{key: k8s.amazonaws.com/accelerator, operator: Exists}]
- matchExpressions: [{key: kubernetes.azure.com/accelerator, operator: In, values: [nvidia]}]
# by hand
- matchExpressions: [{key: tensor-fusion.ai/gpu, operator: In, values: ["true"]}]
{{- end -}}

{{- define "vcuda.agent.pod" -}}
{{- $agent := .Values.agent -}}
metadata:
  annotations:
    checksum/config: {{ include "vcuda.agent.config" . | sha256sum }}
    {{- with $agent.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- include "vcuda.agent.selector" . | nindent 4 }}
    {{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $agent.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with include "vcuda.runtimeClass" . }}
  runtimeClassName: {{ . }}
  {{- end }}
  serviceAccountName: {{ include "vcuda.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- if $agent.hostIPC }}
  hostIPC: true
  {{- end }}
  {{- if $agent.hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- with $agent.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- /* What remains after the drain: workers are killed 2 s later. */}}
  terminationGracePeriodSeconds: {{ add $agent.drainSeconds 15 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
  {{- with $agent.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if ne (toString $agent.affinity) "auto" }}
  {{- with $agent.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- else if and (eq $agent.driver "nvidia") (not $agent.gpus.resource) }}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          {{- include "vcuda.agent.nodes" . | nindent 10 }}
  {{- end }}
  {{- with $agent.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $agent.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    - {{- toYaml (merge (dict) . (dict "labelSelector" (dict "matchLabels" (include "vcuda.agent.selector" $ | fromYaml)))) | nindent 6 }}
    {{- end }}
  {{- end }}
  containers:
    - name: gpu-agent
      image: {{ include "vcuda.image" (dict "root" . "image" $agent.image) }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - --config
        - /etc/vcuda/agent.yaml
        {{- if include "vcuda.network.node" . }}
        - --set
        - store.node=$(VCUDA_NODE)
        {{- end }}
      env:
        {{- if include "vcuda.network.node" . }}
        - name: VCUDA_NODE
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        {{- end }}
        {{- if and (eq $agent.driver "nvidia") (not $agent.gpus.resource) }}
        - name: NVIDIA_VISIBLE_DEVICES
          value: {{ $agent.gpus.visible | quote }}
        {{- end }}
        - name: NVIDIA_DRIVER_CAPABILITIES
          value: compute,utility
        - name: HOME
          value: /tmp
        {{- if eq $agent.driver "software" }}
        # What the UUIDs of its GPUs are made of: another for each agent, the same after a restart.
        - name: VCUDA_PLACE
          valueFrom: {fieldRef: {fieldPath: {{ ternary "spec.nodeName" "metadata.name" (eq $agent.kind "DaemonSet") }}}}
        - name: VCUDA_SOFTGPU_IDENTITY
          value: {{ printf "%s/%s/$(VCUDA_PLACE)" .Release.Namespace (include "vcuda.agent" .) }}
        {{- end }}
        {{- with $agent.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: send, containerPort: {{ $agent.ports.send }}}
        - {name: recv, containerPort: {{ $agent.ports.recv }}}
        - {name: http, containerPort: {{ $agent.ports.control }}}
      startupProbe:
        httpGet: {path: /readyz, port: http}
        {{- toYaml $agent.probes.startup | nindent 8 }}
      livenessProbe:
        # On a Unix socket: nobody on the network can keep it from being answered.
        exec: {command: [gpu-agent, --healthy, --config, /etc/vcuda/agent.yaml]}
        {{- toYaml $agent.probes.liveness | nindent 8 }}
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        {{- toYaml $agent.probes.readiness | nindent 8 }}
      terminationMessagePolicy: FallbackToLogsOnError
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      resources:
        {{- $resources := deepCopy ($agent.resources | default dict) }}
        {{- with $agent.gpus.resource }}
        {{- $limits := merge (dict . $agent.gpus.count) ($resources.limits | default dict) }}
        {{- $_ := set $resources "limits" $limits }}
        {{- end }}
        {{- toYaml $resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/vcuda/agent.yaml, subPath: agent.yaml, readOnly: true}
        - {name: cache, mountPath: /var/cache/vcuda}
        - {name: tmp, mountPath: /tmp}
        {{- if include "vcuda.agent.shm" . }}
        - {name: shm, mountPath: /dev/shm}
        {{- end }}
        {{- if $agent.localSocket }}
        - {name: local, mountPath: /run/vcuda-local}
        {{- end }}
        {{- if .Values.auth.enabled }}
        - {name: token, mountPath: /etc/vcuda/token, readOnly: true}
        {{- end }}
        {{- if include "vcuda.http.secret" . }}
        - {name: http, mountPath: /etc/vcuda/http, readOnly: true}
        {{- end }}
        {{- if .Values.auth.serviceAccount.enabled }}
        - {name: keys, mountPath: /etc/vcuda/keys, readOnly: true}
        {{- end }}
        {{- if and (include "vcuda.store" .) (include "vcuda.store.secret" .) }}
        - {name: store, mountPath: /etc/vcuda/store, readOnly: true}
        {{- end }}
        {{- if $agent.networks }}
        - {name: networks, mountPath: /etc/vcuda/networks, readOnly: true}
        {{- end }}
        {{- if .Values.tls.enabled }}
        - {name: tls, mountPath: /etc/vcuda/tls, readOnly: true}
        {{- end }}
        {{- if include "vcuda.agent.peerCA" . }}
        - {name: tls-ca, mountPath: /etc/vcuda/tls-ca, readOnly: true}
        {{- end }}
        {{- with $agent.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "vcuda.agent" . }}
    - name: cache
      {{- /* helm joins maps, so a source of the user's stands beside the chart's own. */}}
      {{- toYaml (gt (len $agent.cache) 1 | ternary (omit $agent.cache "emptyDir") $agent.cache) | nindent 6 }}
    - name: tmp
      emptyDir: {}
    {{- if include "vcuda.agent.shm" . }}
    - name: shm
      emptyDir: {medium: Memory, sizeLimit: 1Gi}
    {{- end }}
    {{- with $agent.localSocket }}
    - name: local
      hostPath: {path: {{ . }}, type: Directory}
    {{- end }}
    {{- if .Values.auth.enabled }}
    - name: token
      secret:
        secretName: {{ .Values.auth.secretName }}{{ if not .Values.auth.existing }}-tenants{{ end }}
        defaultMode: 0440
    {{- end }}
    {{- with include "vcuda.http.secret" . }}
    - name: http
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- if .Values.auth.serviceAccount.enabled }}
    - name: keys
      configMap:
        name: {{ .Values.auth.serviceAccount.configMap | default (printf "%s-keys" (include "vcuda.agent" .)) }}
        # By name: a pod waits where the Job has not written it yet.
        items: [{key: jwks, path: jwks}]
    {{- end }}
    {{- if and (include "vcuda.store" .) (include "vcuda.store.secret" .) }}
    - name: store
      secret:
        secretName: {{ include "vcuda.store.secret" . }}
        items: [{key: password, path: password}]
        defaultMode: 0440
    {{- end }}
    {{- with $agent.networks }}
    - name: networks
      projected:
        defaultMode: 0440
        sources:
          {{- range . }}
          - secret:
              name: {{ include "vcuda.network.secret" (dict "root" $ "network" .) }}
              items:
                - {key: token, path: {{ .name }}.token}
                {{- if or .password .user }}
                - {key: password, path: {{ .name }}.password}
                {{- end }}
          {{- end }}
    {{- end }}
    {{- if .Values.tls.enabled }}
    - name: tls
      secret:
        secretName: {{ .Values.tls.secretName }}
        items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
        defaultMode: 0440
    {{- end }}
    {{- if include "vcuda.agent.peerCA" . }}
    - name: tls-ca
      configMap:
        name: {{ .Values.tls.caConfigMap }}
        items: [{key: ca.crt, path: ca.crt}]
    {{- end }}
    {{- with $agent.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
