{{/*
What injection does, written once for all engines.

"vcuda.inject.pieces": what a pod gets.  A string ${name} stands for a variable.
"vcuda.inject.variables": those variables, each in both languages: CEL (MutatingAdmissionPolicy and
Kyverno's MutatingPolicy) and JMESPath (Kyverno's ClusterPolicy).  In JMESPath, earlier variables are
names at the root.
"vcuda.inject.words": annotations with a fixed form.

_cel.tpl and _jmespath.tpl turn these into policies.
*/}}

{{- define "vcuda.inject.preload" -}}
{{- $names := .Files.Get "files/preload" | trim | splitList "\n" -}}
{{- $paths := list -}}
{{- range $names }}{{ $paths = append $paths (printf "/lib/vcuda/%s" .) }}{{ end -}}
{{- join ":" $paths -}}
{{- end -}}

{{- define "vcuda.inject.pieces" -}}
install:
  name: tensor-fusion-init
  image: ${image}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [install, /opt/vcuda, /target]
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 64Mi}
  securityContext:
    {{- include "vcuda.restricted" . | nindent 4 }}
  volumeMounts:
    - {name: tensor-fusion-libs, mountPath: /target}
sidecar:
  name: vcuda-client
  image: ${image}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [run]
  env:
    - {name: VCUDA_AGENT, value: "${server}"}
    - {name: VCUDA_SOCKET, value: /run/tensor-fusion/vcuda.sock}
    - {name: VCUDA_IPC, value: "${ipc}"}
    - {name: VCUDA_VRAM_LIMIT, value: "${vramLimit}"}
    - {name: VCUDA_GPU_COUNT, value: "${gpuCount}"}
    - {name: VCUDA_SHM_SIZE, value: "${shmSize}"}
    - {name: VCUDA_LOG_LEVEL, value: "${logLevel}"}
    - {name: VCUDA_TOKEN_FILE, value: "${tokenFile}"}
    - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
  startupProbe:
    exec: {command: [/usr/bin/vcuda-client, probe]}
    periodSeconds: 1
    # A name without addresses takes the resolver seconds; its answer says more than "timed out".
    timeoutSeconds: 10
    failureThreshold: 60
  {{- if .Values.injector.readinessProbe }}
  readinessProbe:
    exec: {command: [/usr/bin/vcuda-client, probe]}
    periodSeconds: 10
    timeoutSeconds: 10
  {{- end }}
  livenessProbe:
    exec: {command: [/usr/bin/vcuda-client, status]}
    periodSeconds: 20
    timeoutSeconds: 5
  # New sessions are refused from here on; those that run go on until the programs have ended.
  lifecycle:
    preStop:
      exec: {command: [/usr/bin/vcuda-client, drain]}
  terminationMessagePolicy: FallbackToLogsOnError
  resources:
    requests: ${requests}
    limits: ${limits}
  securityContext:
    {{- include "vcuda.restricted" . | nindent 4 }}
  volumeMounts:
    - {name: tensor-fusion-shm, mountPath: /run/tensor-fusion}
    - {name: tensor-fusion-token, mountPath: /etc/vcuda/token, readOnly: true}
volumes:
  - {name: tensor-fusion-libs, emptyDir: {sizeLimit: 64Mi}}
  - {name: tensor-fusion-shm, emptyDir: {medium: Memory, sizeLimit: "${shmSize}"}}
  # Optional unless agents ask for a token: then a missing secret is an event that names it.
  - {name: tensor-fusion-token, secret: {secretName: "${authSecret}", optional: "${authOptional}"}}
mounts:
  - {name: tensor-fusion-libs, mountPath: /lib/vcuda, readOnly: true}
  - {name: tensor-fusion-shm, mountPath: /run/tensor-fusion}
  {{- if .Values.injector.nvidiaSmi }}
  - {name: tensor-fusion-libs, mountPath: /usr/local/bin/nvidia-smi, subPath: nvidia-smi, readOnly: true}
  {{- end }}
preloadFile: {name: tensor-fusion-libs, mountPath: /etc/ld.so.preload, subPath: ld.so.preload, readOnly: true}
annotations:
  tensor-fusion.ai/status: injected
  tensor-fusion.ai/injected-version: {{ .Chart.AppVersion | quote }}
  tensor-fusion.ai/ipc-mode: ${ipc}
  kubectl.kubernetes.io/default-container: ${defaultContainer}
labels:
  tensor-fusion.ai/component: client
{{- end -}}

{{/* Paths of containers that injection needs for itself, with what lies below them. */}}
{{- define "vcuda.inject.ourPaths" -}}
^/*(lib/+vcuda|run/+tensor-fusion)(/.*)?$
{{- end -}}

{{/* Each: the annotation, what it must match, and how a refusal says so. */}}
{{- define "vcuda.inject.words" -}}
{{- /* Below 100 TiB: Kubernetes' CEL adds no larger quantities. */ -}}
{{- $bytes := "^[1-9]([0-9]{0,13}|[0-9]{0,10}(k|Ki)|[0-9]{0,7}Mi?|[0-9]{0,4}Gi?|[0-9]?Ti?)$" -}}
{{- $cores := "^([1-9][0-9]{0,5}m?|[0-9]{0,3}[.][0-9]{1,3})$" -}}
{{- $names := "^[ ,]*[-a-z0-9]{1,63}( *, *[-a-z0-9]{1,63})*[ ,]*$" -}}
- {key: vram-limit, form: {{ $bytes | quote }}, takes: "bytes, like 4Gi"}
- {key: gpu-count, form: "^[1-9][0-9]?$", takes: "a number from 1 to 99"}
- {key: shm-size, form: {{ $bytes | quote }}, takes: "bytes, like 512Mi"}
- {key: sidecar-memory-request, form: {{ $bytes | quote }}, takes: "bytes, like 64Mi"}
- {key: sidecar-memory-limit, form: {{ $bytes | quote }}, takes: "bytes, like 512Mi"}
- {key: sidecar-cpu-request, form: {{ $cores | quote }}, takes: "cores, like 100m"}
- {key: sidecar-cpu-limit, form: {{ $cores | quote }}, takes: "cores, like 2"}
- {key: ipc-mode, form: "^(host|pod)$", takes: "host or pod"}
- {key: preload-mode, form: "^(env|file|both|none)$", takes: "env, file, both or none"}
{{- if include "vcuda.native" . }}
- {key: native-sidecar, form: "^(true|false)$", takes: "true or false"}
{{- else }}
- {key: native-sidecar, form: "^false$", takes: "false here: the cluster is older than 1.29, or injector.nativeSidecar is false"}
{{- end }}
- {key: protocol, form: "^native$", takes: "native; no other transport is served yet"}
- {key: log-level, form: "^(error|warn|info|debug)$", takes: "error, warn, info or debug"}
- {key: server, form: "^[-A-Za-z0-9._:,/]{1,1000}$", takes: "HOST, HOST:PORT or a list of them with commas"}
- {key: auth-secret, form: "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$", takes: "the name of a secret"}
- {key: inject-container, form: {{ $names | quote }}, takes: "names of containers with commas between"}
- {key: exclude-container, form: {{ $names | quote }}, takes: "names of containers with commas between"}
- {key: client-image, form: "^[-A-Za-z0-9._:/@]{1,500}$", takes: "an image reference"}
{{- end -}}

{{- define "vcuda.inject.variables" -}}
{{- $p := "tensor-fusion.ai/" -}}
{{- $auth := .Values.auth.enabled -}}
{{- $skip := .Values.injector.skipContainers | toJson -}}
{{- $resources := .Values.injector.resources -}}
{{- $image := include "vcuda.image" (dict "root" . "image" .Values.injector.image) -}}
{{- $native := ternary "true" "false" (eq (include "vcuda.native" .) "true") -}}
- name: annotations
  cel: "has(object.metadata.annotations) ? object.metadata.annotations : dyn({})"
  jmespath: "request.object.metadata.annotations || `{}`"
- name: names
  cel: "object.spec.containers.map(c, c.name)"
  jmespath: "request.object.spec.containers[].name"
- name: inits
  cel: "has(object.spec.initContainers) ? object.spec.initContainers : dyn([])"
  jmespath: "request.object.spec.initContainers || `[]`"
- name: initNames
  cel: "variables.inits.map(c, c.name)"
  jmespath: "inits[].name || `[]`"
- name: nodes
  cel: "has(object.spec.nodeSelector) ? object.spec.nodeSelector : dyn({})"
  jmespath: "request.object.spec.nodeSelector || `{}`"
# What the annotation names; empty: everything but what the chart skips.
- name: wanted
  cel: "variables.annotations[?'{{ $p }}inject-container'].orValue('').split(',', 64).map(s, s.trim()).filter(s, s != '')"
  jmespath: "split(regex_replace_all('[^-a-z0-9,]', annotations.\"{{ $p }}inject-container\" || '', ''), ',')[?@ != '']"
- name: unwanted
  cel: "variables.annotations[?'{{ $p }}exclude-container'].orValue('').split(',', 64).map(s, s.trim()).filter(s, s != '')"
  jmespath: "split(regex_replace_all('[^-a-z0-9,]', annotations.\"{{ $p }}exclude-container\" || '', ''), ',')[?@ != '']"
- name: native
  cel: "variables.annotations[?'{{ $p }}native-sidecar'].orValue('{{ $native }}') == 'true'"
  jmespath: "(annotations.\"{{ $p }}native-sidecar\" || '{{ $native }}') == 'true'"
# Containers that programs run in.  Init containers run before a sidecar that is a plain container.
# (JMESPath sees nothing outside of a filter, so what it compares with is written into it.)
- name: targets
  cel: >-
    variables.names.filter(n, !(n in variables.unwanted)
    && (n in variables.wanted || size(variables.wanted) == 0 && !(n in {{ $skip }})))
  jmespath: >-
    names[?!contains(`<< unwanted >>`, @)
    && (contains(`<< wanted >>`, @) || (`<< length(wanted) >>` == `0` && !contains(`{{ $skip }}`, @)))]
- name: initTargets
  cel: >-
    variables.initNames.filter(n, variables.native && !(n in variables.unwanted)
    && (n in variables.wanted || size(variables.wanted) == 0 && !(n in {{ $skip }})))
  jmespath: >-
    initNames[?`<< native >>` == `true` && !contains(`<< unwanted >>`, @)
    && (contains(`<< wanted >>`, @) || (`<< length(wanted) >>` == `0` && !contains(`{{ $skip }}`, @)))]
- name: image
  cel: "variables.annotations[?'{{ $p }}client-image'].orValue('{{ $image }}')"
  jmespath: "annotations.\"{{ $p }}client-image\" || '{{ $image }}'"
- name: server
  cel: "variables.annotations[?'{{ $p }}server'].orValue('{{ include "vcuda.server" . }}')"
  jmespath: "annotations.\"{{ $p }}server\" || '{{ include "vcuda.server" . }}'"
# Kubernetes refuses hostIPC beside settings of the pod's own IPC namespace.
- name: ownIPC
  cel: >-
    has(object.spec.securityContext) && has(object.spec.securityContext.sysctls)
    && object.spec.securityContext.sysctls.exists(s, s.name.matches('^(kernel|fs.mqueue)[./]'))
  jmespath: "!(!(request.object.spec.securityContext.sysctls[?regex_match('^(kernel|fs.mqueue)[./]', name)]))"
- name: ipc
  {{- if eq .Values.injector.ipcMode "auto" }}
  cel: >-
    variables.annotations[?'{{ $p }}ipc-mode'].orValue(
      has(object.spec.hostUsers) && !object.spec.hostUsers || variables.ownIPC
      || namespaceObject != null && has(namespaceObject.metadata.labels)
        && namespaceObject.metadata.labels[?'pod-security.kubernetes.io/enforce'].orValue('privileged') != 'privileged'
      ? 'pod' : 'host')
  # The rule "namespace" has written the annotation where the namespace wants it.
  jmespath: "annotations.\"{{ $p }}ipc-mode\" || ((request.object.spec.hostUsers == `false` || ownIPC) && 'pod') || 'host'"
  {{- else }}
  cel: "variables.annotations[?'{{ $p }}ipc-mode'].orValue('{{ .Values.injector.ipcMode }}')"
  jmespath: "annotations.\"{{ $p }}ipc-mode\" || '{{ .Values.injector.ipcMode }}'"
  {{- end }}
- name: host
  cel: "variables.ipc == 'host'"
  jmespath: "ipc == 'host'"
- name: hostIPC
  cel: "variables.host || has(object.spec.hostIPC) && object.spec.hostIPC"
  jmespath: "host || request.object.spec.hostIPC == `true`"
# Kubernetes refuses hostPID beside shareProcessNamespace.
- name: hostPID
  cel: >-
    variables.host && !(has(object.spec.shareProcessNamespace) && object.spec.shareProcessNamespace)
    || has(object.spec.hostPID) && object.spec.hostPID
  jmespath: "(host && request.object.spec.shareProcessNamespace != `true`) || request.object.spec.hostPID == `true`"
- name: vramLimit
  cel: "variables.annotations[?'{{ $p }}vram-limit'].orValue('')"
  jmespath: "annotations.\"{{ $p }}vram-limit\" || ''"
- name: gpuCount
  cel: "variables.annotations[?'{{ $p }}gpu-count'].orValue('')"
  jmespath: "annotations.\"{{ $p }}gpu-count\" || ''"
- name: shmSize
  cel: "variables.annotations[?'{{ $p }}shm-size'].orValue('{{ .Values.injector.shmSize }}')"
  jmespath: "annotations.\"{{ $p }}shm-size\" || '{{ .Values.injector.shmSize }}'"
- name: logLevel
  cel: "variables.annotations[?'{{ $p }}log-level'].orValue('{{ .Values.injector.logLevel }}')"
  jmespath: "annotations.\"{{ $p }}log-level\" || '{{ .Values.injector.logLevel }}'"
- name: preloadMode
  cel: "variables.annotations[?'{{ $p }}preload-mode'].orValue('{{ .Values.injector.preloadMode }}')"
  jmespath: "annotations.\"{{ $p }}preload-mode\" || '{{ .Values.injector.preloadMode }}'"
- name: authSecret
  cel: "variables.annotations[?'{{ $p }}auth-secret'].orValue('{{ .Values.auth.secretName }}')"
  jmespath: "annotations.\"{{ $p }}auth-secret\" || '{{ .Values.auth.secretName }}'"
- name: authOptional
  cel: "{{ if $auth }}false{{ else }}!('{{ $p }}auth-secret' in variables.annotations){{ end }}"
  jmespath: "{{ if $auth }}`false`{{ else }}!(annotations.\"{{ $p }}auth-secret\"){{ end }}"
- name: tokenFile
  cel: "variables.authOptional ? '' : '/etc/vcuda/token/token'"
  jmespath: "(authOptional && '') || (!authOptional && '/etc/vcuda/token/token') || ''"
- name: requests
  cel: >-
    {'cpu': variables.annotations[?'{{ $p }}sidecar-cpu-request'].orValue('{{ $resources.cpu }}'),
    'memory': variables.annotations[?'{{ $p }}sidecar-memory-request'].orValue('{{ $resources.memory }}')}
  jmespath: >-
    {cpu: annotations."{{ $p }}sidecar-cpu-request" || '{{ $resources.cpu }}',
    memory: annotations."{{ $p }}sidecar-memory-request" || '{{ $resources.memory }}'}
# Shared memory is charged to the sidecar, which makes it: the limit is what it needs itself and that.
- name: memorySum
  cel: >-
    isQuantity(variables.shmSize)
    ? quantity(variables.shmSize).add(quantity('{{ $resources.memoryBase }}')).asInteger() : 0
  jmespath: "add(shmSize, '{{ $resources.memoryBase }}')"
- name: memoryLimit
  cel: >-
    variables.annotations[?'{{ $p }}sidecar-memory-limit'].orValue(variables.memorySum % 1048576 == 0
    ? string(variables.memorySum / 1048576) + 'Mi' : string(variables.memorySum))
  jmespath: "annotations.\"{{ $p }}sidecar-memory-limit\" || memorySum"
- name: cpuLimit
  cel: "variables.annotations[?'{{ $p }}sidecar-cpu-limit'].orValue('{{ $resources.cpuLimit }}')"
  jmespath: "annotations.\"{{ $p }}sidecar-cpu-limit\" || '{{ $resources.cpuLimit }}'"
- name: limits
  cel: >-
    variables.cpuLimit == '' ? {'memory': variables.memoryLimit}
    : {'memory': variables.memoryLimit, 'cpu': variables.cpuLimit}
  jmespath: "(cpuLimit == '' && {memory: memoryLimit}) || {memory: memoryLimit, cpu: cpuLimit}"
- name: defaultContainer
  cel: "variables.annotations[?'kubectl.kubernetes.io/default-container'].orValue(variables.names[0])"
  # Only where there is none: the rule "default-container".
  jmespath: "regex_replace_all('[^-a-z0-9]', names[0], '')"
{{- end -}}
