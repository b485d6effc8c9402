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
  # The sidecar's: it ends before that one starts, so a pod needs no more by it, and whatever a quota or a
  # LimitRange wants of the one is right for the other.
  resources:
    requests: ${requests}
    limits: ${limits}
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
    - {name: VCUDA_GPU_SPREAD, value: "${gpuSpread}"}
    - {name: VCUDA_UPLOAD_CACHE, value: "${uploadCache}"}
    - {name: VCUDA_PRIORITY, value: "${priority}"}
    - {name: VCUDA_PROTOCOL, value: "${protocol}"}
    {{- if .Values.agent.localSocket }}
    - {name: VCUDA_LOCAL_SOCKET, value: {{ include "vcuda.localSocket" . }}}
    {{- end }}
    - {name: VCUDA_COMPRESS, value: "${compress}"}
    - {name: VCUDA_SHM_SIZE, value: "${shmSize}"}
    - {name: VCUDA_GRACE, value: "${grace}"}
    - {name: VCUDA_LOG_LEVEL, value: "${logLevel}"}
    - {name: VCUDA_TOKEN_FILE, value: "${tokenFile}"}
    {{- if .Values.tls.enabled }}
    - {name: VCUDA_CA, value: /etc/vcuda/token/ca.crt}
    - {name: VCUDA_TLS_NAME, value: {{ include "vcuda.tls.name" . }}}
    {{- end }}
    - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
  {{- $probes := .Values.injector.probes }}
  startupProbe:
    exec: {command: [/usr/bin/vcuda-client, probe]}
    {{- toYaml $probes.startup | nindent 4 }}
  {{- if .Values.injector.readinessProbe }}
  readinessProbe:
    exec: {command: [/usr/bin/vcuda-client, probe]}
    {{- toYaml $probes.readiness | nindent 4 }}
  {{- end }}
  livenessProbe:
    exec: {command: [/usr/bin/vcuda-client, status]}
    {{- toYaml $probes.liveness | nindent 4 }}
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
    {{- if .Values.agent.localSocket }}
    - {name: tensor-fusion-local, mountPath: /run/vcuda-local, readOnly: true}
    {{- end }}
volumes:
  {{- if .Values.agent.localSocket }}
  # The node's folder with its agent's socket, or nothing where the namespace refuses such volumes.
  - ${localVolume}
  {{- end }}
  - {name: tensor-fusion-libs, emptyDir: {sizeLimit: 64Mi}}
  - {name: tensor-fusion-shm, emptyDir: {medium: Memory, sizeLimit: "${shmSize}"}}
  {{- $account := .Values.auth.serviceAccount }}
  {{- if or $account.enabled .Values.tls.enabled }}
  - name: tensor-fusion-token
    projected:
      sources:
        {{- if $account.enabled }}
        - serviceAccountToken: {audience: {{ $account.audience }}, expirationSeconds: {{ $account.seconds }}, path: token}
        {{- else }}
        - secret: {name: "${authSecret}", optional: "${authOptional}"}
        {{- end }}
        {{- if .Values.tls.enabled }}
        # Whom the sidecar believes; a missing one is an event that names it.
        - configMap: {name: {{ .Values.tls.caConfigMap }}, items: [{key: ca.crt, path: ca.crt}]}
        {{- end }}
  {{- else }}
  # Optional unless agents ask for a token: then a missing secret is an event that names it.
  - {name: tensor-fusion-token, secret: {secretName: "${authSecret}", optional: "${authOptional}"}}
  {{- end }}
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
  # Volumes on the node's disk or in its memory keep the cluster's autoscaler from taking the node away.
  cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes: ${evictable}
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
{{- /* Below 100 TiB: Kubernetes' CEL adds no larger quantities.  What is too small has lost its unit. */ -}}
{{- $bytes := "^[1-9]([0-9]{0,13}|[0-9]{0,10}(k|Ki)|[0-9]{0,7}Mi?|[0-9]{0,4}Gi?|[0-9]?Ti?)$" -}}
{{- $from10M := "^[1-9]([0-9]{7,13}|[0-9]{4,10}(k|Ki)|[0-9]{1,7}Mi?|[0-9]{0,4}Gi?|[0-9]?Ti?)$" -}}
{{- $from40M := "^([4-9][0-9]{7}|[1-9][0-9]{8,13}|([4-9][0-9]{4}|[1-9][0-9]{5,10})(k|Ki)|([4-9][0-9]|[1-9][0-9]{2,7})Mi?|[1-9][0-9]{0,4}Gi?|[1-9][0-9]?Ti?)$" -}}
{{- $cores := "^([1-9][0-9]{0,5}m?|[0-9]{0,3}[.][0-9]{1,3})$" -}}
{{- $names := "^[ ,]*[-a-z0-9]{1,63}( *, *[-a-z0-9]{1,63})*[ ,]*$" -}}
- {key: enabled, form: "^(true|false)$", takes: "true or false"}
- {key: vram-limit, form: {{ $from10M | quote }}, takes: "bytes from 10M on, like 4Gi"}
- {key: gpu-count, form: "^([1-9]|1[0-6])$", takes: "a number from 1 to 16"}
- {key: gpu-spread, form: "^(never|if-needed|always)$", takes: "never, if-needed or always"}
- {key: upload-cache, form: "^(true|false)$", takes: "true or false"}
- {key: priority, form: "^(low|normal|high)$", takes: "low, normal or high"}
- {key: shm-size, form: {{ $from40M | quote }}, takes: "bytes from 40M on, like 512Mi"}
- {key: sidecar-memory-request, form: {{ $bytes | quote }}, takes: "bytes, like 64Mi"}
- {key: sidecar-memory-limit, form: {{ $from10M | quote }}, takes: "bytes from 10M on, like 512Mi"}
- {key: sidecar-cpu-request, form: {{ $cores | quote }}, takes: "cores, like 100m"}
- {key: sidecar-cpu-limit, form: {{ $cores | quote }}, takes: "cores, like 2"}
- {key: ipc-mode, form: "^(host|pod)$", takes: "host or pod"}
- {key: preload-mode, form: "^(env|file|both|none)$", takes: "env, file, both or none"}
{{- if include "vcuda.native" . }}
- {key: native-sidecar, form: "^(true|false)$", takes: "true or false"}
{{- else }}
- {key: native-sidecar, form: "^false$", takes: "false here: the cluster is older than 1.29, or injector.nativeSidecar is false"}
{{- end }}
{{- if .Values.tls.enabled }}
- {key: protocol, form: "^(auto|native|local)$", takes: "auto, native or local; light goes in the clear, and tls.enabled is set"}
{{- else }}
- {key: protocol, form: "^(auto|native|local|light)$", takes: "auto, native, local or light"}
{{- end }}
- {key: compress, form: "^(auto|off|always)$", takes: "auto, off or always"}
- {key: grace, form: "^(0|[1-9][0-9]{0,2}|[12][0-9]{3}|3[0-5][0-9]{2}|3600)$", takes: "seconds from 0 to 3600; 0 switches it off"}
- {key: log-level, form: "^(error|warn|info|debug)$", takes: "error, warn, info or debug"}
- {key: server, form: "^[-A-Za-z0-9._:,/+]{1,1000}$", takes: "HOST, HOST:PORT or a list of them, with a comma between (one of them) or + (all of them)"}
- {key: auth-secret, form: "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$", takes: "the name of a secret"}
- {key: inject-container, form: {{ $names | quote }}, takes: "names of containers with commas between"}
- {key: exclude-container, form: {{ $names | quote }}, takes: "names of containers with commas between"}
- {key: client-image, form: "^[-A-Za-z0-9._:/@]{1,500}$", takes: "an image reference"}
{{- end -}}

{{/* Where the agents' service cannot be found by its name. */}}
{{- define "vcuda.inject.noName" -}}
tensor-fusion.ai: this dnsPolicy (Default, or ClusterFirst with hostNetwork) asks the resolver of the node, which does not know the service of the agents; set dnsPolicy: ClusterFirst, with hostNetwork ClusterFirstWithHostNet, or tensor-fusion.ai/server to an address
{{- end -}}

{{/* Keys of TensorFusion's operator that nothing here acts on, as annotations and as labels. */}}
{{- define "vcuda.inject.passed" -}}
{{- $keys := list "gpupool" "gpu-indices" "gpu-model" "gpu-ids" "gpu-released" "vendor" "dedicated-gpu"
  "partition" "partition-id" "partition-uuids" "isolation" "compute-isolation" "qos" "enabled-replicas"
  "workload" "workload-profile" "client-profile" "workload-mode" "selected-workload" "pending-owned-workload"
  "generate-workload(-[a-z-]+)?" "(auto-)?replicas" "worker-pod-template" "is-local-gpu" "embedded-worker"
  "dedicated-worker" "sidecar-worker" "no-standalone-worker-mode" "host-port" "port-name" "port-number" "ports"
  "autoscale(-target)?" "auto-(resources|limits|requests)" "auto-scale-target-resource" "gang-[a-z-]+"
  "eviction-protection" "do-not-disrupt" "vram-request(-[a-z0-9-]+)?" "vram-limit-[a-z0-9-]+" "tflops-[a-z0-9-]+"
  "compute-percent-(request|limit)" "effective-hard-sm-percent" "container-gpu-count" "container-gpus"
  "disable-features" "index" "managed-by" "cluster" "node-class" "pod-template-hash" "node-selector-hash"
  "worker-name" "tf-pod-count" "pod-counter-key" "hourly-pricing" "last-sync" "hardware-vendor" "used-by" -}}
^tensor-fusion[.]ai/({{ join "|" $keys }})$
{{- end -}}

{{- define "vcuda.inject.notice" -}}
of TensorFusion and its operator; here nothing acts on it (docs/KUBERNETES.md)
{{- end -}}

{{/* Those that mean something here. */}}
{{- define "vcuda.inject.known" -}}
{{- $keys := list "status" "injected-version" -}}
{{- range include "vcuda.inject.words" . | fromYamlArray }}{{ $keys = append $keys .key }}{{ end -}}
^tensor-fusion[.]ai/({{ join "|" $keys }})$
{{- end -}}

{{- define "vcuda.inject.variables" -}}
{{- $p := "tensor-fusion.ai/" -}}
{{- $ours := ternary "tensor-fusion-libs,tensor-fusion-shm,tensor-fusion-local" "tensor-fusion-libs,tensor-fusion-shm" (ne .Values.agent.localSocket "") -}}
{{- $evict := "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes" -}}
{{- $known := include "vcuda.inject.known" . -}}
{{- $passed := include "vcuda.inject.passed" . -}}
{{- $auth := .Values.auth.enabled -}}
{{- $skip := .Values.injector.skipContainers | toJson -}}
{{- $drop := .Values.injector.dropResources | toJson -}}
{{- $resources := .Values.injector.resources -}}
{{- $image := include "vcuda.image" (dict "root" . "image" .Values.injector.image) -}}
{{- $native := ternary "true" "false" (eq (include "vcuda.native" .) "true") -}}
- name: annotations
  cel: "has(object.metadata.annotations) ? object.metadata.annotations : dyn({})"
  jmespath: "request.object.metadata.annotations || `{}`"
- name: labels
  cel: "has(object.metadata.labels) ? object.metadata.labels : dyn({})"
  jmespath: "request.object.metadata.labels || `{}`"
# What begins as our keys do and is none, or is none of a label.
- name: unknown
  cel: >-
    variables.annotations.filter(k, k.startsWith('{{ $p }}') && !k.matches('{{ $known }}') && !k.matches('{{ $passed }}'))
  jmespath: >-
    keys(annotations)[?starts_with(@, '{{ $p }}') && !regex_match('{{ $known }}', @) && !regex_match('{{ $passed }}', @)]
- name: unknownLabels
  cel: >-
    variables.labels.filter(k, k.startsWith('{{ $p }}') && !(k in ['{{ $p }}enabled', '{{ $p }}component']) && !k.matches('{{ $passed }}'))
  jmespath: >-
    keys(labels)[?starts_with(@, '{{ $p }}') && !contains(['{{ $p }}enabled', '{{ $p }}component'], @) && !regex_match('{{ $passed }}', @)]
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
# (Names as they go into an expression: without what no container can be called.)
- name: safeTargets
  cel: "variables.targets + variables.initTargets"
  jmespath: "map(&regex_replace_all('[^-a-z0-9]', @, ''), [targets, initTargets][])"
# Slices of a GPU of the pod's own node: they are of a size, so they are not dropped as whole ones are.
- name: slices
  cel: >-
    (object.spec.containers + variables.inits).exists(c, c.name in variables.safeTargets && has(c.resources) && has(c.resources.limits)
    && c.resources.limits.exists(k, k.startsWith('nvidia.com/mig-') && !(k in {{ $drop }})))
  jmespath: >-
    !(!([request.object.spec.containers[?contains(`<< safeTargets >>`, name)], inits[?contains(`<< safeTargets >>`, name)]][][]
    | [?keys(resources.limits || `{}`)[?starts_with(@, 'nvidia.com/mig-') && !contains(`{{ $drop }}`, @)]]))
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
  {{- if eq (include "vcuda.ipcMode" .) "auto" }}
  cel: >-
    variables.annotations[?'{{ $p }}ipc-mode'].orValue(
      has(object.spec.hostUsers) && !object.spec.hostUsers || variables.ownIPC
      || namespaceObject != null && has(namespaceObject.metadata.labels)
        && namespaceObject.metadata.labels[?'pod-security.kubernetes.io/enforce'].orValue('privileged') != 'privileged'
      ? 'pod' : 'host')
  # The rule "namespace" has written the annotation where the namespace wants it.
  jmespath: "annotations.\"{{ $p }}ipc-mode\" || ((request.object.spec.hostUsers == `false` || ownIPC) && 'pod') || 'host'"
  {{- else }}
  cel: "variables.annotations[?'{{ $p }}ipc-mode'].orValue('{{ include "vcuda.ipcMode" . }}')"
  jmespath: "annotations.\"{{ $p }}ipc-mode\" || '{{ include "vcuda.ipcMode" . }}'"
  {{- end }}
- name: host
  cel: "variables.ipc == 'host'"
  jmespath: "ipc == 'host'"
- name: hostIPC
  cel: "variables.host || has(object.spec.hostIPC) && object.spec.hostIPC"
  jmespath: "host || request.object.spec.hostIPC == `true`"
# A pod's own alone, unless the chart says otherwise: nothing here needs the processes of the node.
- name: hostPID
  {{- if .Values.injector.hostPID }}
  # Kubernetes refuses it beside shareProcessNamespace.
  cel: >-
    variables.host && !(has(object.spec.shareProcessNamespace) && object.spec.shareProcessNamespace)
    || has(object.spec.hostPID) && object.spec.hostPID
  jmespath: "(host && request.object.spec.shareProcessNamespace != `true`) || request.object.spec.hostPID == `true`"
  {{- else }}
  cel: "has(object.spec.hostPID) && object.spec.hostPID"
  jmespath: "request.object.spec.hostPID == `true`"
  {{- end }}
- name: vramLimit
  cel: "variables.annotations[?'{{ $p }}vram-limit'].orValue('')"
  jmespath: "annotations.\"{{ $p }}vram-limit\" || ''"
- name: gpuCount
  cel: "variables.annotations[?'{{ $p }}gpu-count'].orValue('')"
  jmespath: "annotations.\"{{ $p }}gpu-count\" || ''"
- name: gpuSpread
  cel: "variables.annotations[?'{{ $p }}gpu-spread'].orValue('')"
  jmespath: "annotations.\"{{ $p }}gpu-spread\" || ''"
- name: protocol
  cel: "variables.annotations[?'{{ $p }}protocol'].orValue('{{ .Values.injector.protocol }}')"
  jmespath: "annotations.\"{{ $p }}protocol\" || '{{ .Values.injector.protocol }}'"
- name: compress
  cel: "variables.annotations[?'{{ $p }}compress'].orValue('{{ .Values.injector.compress }}')"
  jmespath: "annotations.\"{{ $p }}compress\" || '{{ .Values.injector.compress }}'"
{{- with .Values.agent.localSocket }}
# Pod Security's baseline and restricted refuse hostPath: there the pod goes over the network, unless it insists.
- name: localVolume
  cel: >-
    variables.protocol == 'local' || variables.protocol == 'auto'
    && (namespaceObject == null || !has(namespaceObject.metadata.labels)
      || namespaceObject.metadata.labels[?'pod-security.kubernetes.io/enforce'].orValue('privileged') == 'privileged')
    ? {'name': dyn('tensor-fusion-local'), 'hostPath': dyn({'path': dyn('{{ . }}'), 'type': dyn('DirectoryOrCreate')})}
    : {'name': dyn('tensor-fusion-local'), 'emptyDir': dyn({'sizeLimit': dyn('1Mi')})}
  # The rule "namespace-local" has written the annotation where the namespace refuses it.
  jmespath: >-
    ((protocol == 'local' || protocol == 'auto')
    && {name: 'tensor-fusion-local', hostPath: {path: '{{ . }}', type: 'DirectoryOrCreate'}})
    || {name: 'tensor-fusion-local', emptyDir: {sizeLimit: '1Mi'}}
{{- end }}
- name: uploadCache
  cel: "variables.annotations[?'{{ $p }}upload-cache'].orValue('{{ .Values.injector.uploadCache }}')"
  jmespath: "annotations.\"{{ $p }}upload-cache\" || '{{ .Values.injector.uploadCache }}'"
- name: priority
  cel: "variables.annotations[?'{{ $p }}priority'].orValue('')"
  jmespath: "annotations.\"{{ $p }}priority\" || ''"
- name: shmSize
  cel: "variables.annotations[?'{{ $p }}shm-size'].orValue('{{ .Values.injector.shmSize }}')"
  jmespath: "annotations.\"{{ $p }}shm-size\" || '{{ .Values.injector.shmSize }}'"
- name: grace
  cel: "variables.annotations[?'{{ $p }}grace'].orValue('{{ .Values.injector.grace }}')"
  jmespath: "annotations.\"{{ $p }}grace\" || '{{ .Values.injector.grace }}'"
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
  {{- if .Values.auth.serviceAccount.enabled }}
  cel: "'/etc/vcuda/token/token'"
  jmespath: "'/etc/vcuda/token/token'"
  {{- else }}
  cel: "variables.authOptional ? '' : '/etc/vcuda/token/token'"
  jmespath: "(authOptional && '') || (!authOptional && '/etc/vcuda/token/token') || ''"
  {{- end }}
# Shared memory is charged to the sidecar, which makes it: the limit is what it needs itself and that.
- name: memorySum
  cel: >-
    isQuantity(variables.shmSize)
    ? quantity(variables.shmSize).add(quantity('{{ $resources.memoryBase }}')).asInteger() : 0
  jmespath: "add(shmSize, '{{ $resources.memoryBase }}')"
- name: memoryUsual
  {{- if $resources.memoryLimit }}
  cel: "'{{ $resources.memoryLimit }}'"
  jmespath: "'{{ $resources.memoryLimit }}'"
  {{- else }}
  cel: >-
    variables.memorySum % 1048576 == 0
    ? string(variables.memorySum / 1048576) + 'Mi' : string(variables.memorySum)
  jmespath: memorySum
  {{- end }}
# A limit is never below its request: what no annotation says follows what one says.
{{- range list
  (dict "name" "memoryLimit" "key" "memory-limit" "other" "memory-request" "usual" "memoryUsual" "more" true)
  (dict "name" "memoryRequest" "key" "memory-request" "other" "memory-limit" "usual" $resources.memory "bound" "memoryLimit")
  (dict "name" "cpuLimit" "key" "cpu-limit" "other" "cpu-request" "usual" (toString $resources.cpuLimit) "more" true)
  (dict "name" "cpuRequest" "key" "cpu-request" "other" "cpu-limit" "usual" (toString $resources.cpu) "bound" "cpuLimit") }}
{{- $said := printf "%ssidecar-%s" $p .key }}
{{- $other := printf "%ssidecar-%s" $p .other }}
- name: {{ .name }}
{{- if not .usual }}
  cel: "variables.annotations[?'{{ $said }}'].orValue('')"
  jmespath: "annotations.\"{{ $said }}\" || ''"
{{- else if .more }}
{{- $cel := ternary "variables.memoryUsual" (squote .usual) (eq .usual "memoryUsual") }}
{{- $jmespath := ternary "memoryUsual" (squote .usual) (eq .usual "memoryUsual") }}
  cel: >-
    variables.annotations[?'{{ $said }}'].orValue(
    isQuantity(variables.annotations[?'{{ $other }}'].orValue(''))
    && quantity(variables.annotations['{{ $other }}']).compareTo(quantity({{ $cel }})) > 0
    ? variables.annotations['{{ $other }}'] : {{ $cel }})
  jmespath: >-
    annotations."{{ $said }}"
    || (annotations."{{ $other }}" && divide(annotations."{{ $other }}", {{ $jmespath }}) > `1`
    && annotations."{{ $other }}") || {{ $jmespath }}
{{- else }}
  cel: >-
    variables.annotations[?'{{ $said }}'].orValue(
    isQuantity(variables.{{ .bound }}) && quantity(variables.{{ .bound }}).compareTo(quantity('{{ .usual }}')) < 0
    ? variables.{{ .bound }} : '{{ .usual }}')
  jmespath: >-
    annotations."{{ $said }}"
    || ({{ .bound }} != '' && divide({{ .bound }}, '{{ .usual }}') < `1` && {{ .bound }}) || '{{ .usual }}'
{{- end }}
{{- end }}
- name: requests
  cel: "{'cpu': dyn(variables.cpuRequest), 'memory': dyn(variables.memoryRequest)}"
  jmespath: "{cpu: cpuRequest, memory: memoryRequest}"
- name: limits
  cel: >-
    variables.cpuLimit == '' ? {'memory': dyn(variables.memoryLimit)}
    : {'memory': dyn(variables.memoryLimit), 'cpu': dyn(variables.cpuLimit)}
  jmespath: "(cpuLimit == '' && {memory: memoryLimit}) || {memory: memoryLimit, cpu: cpuLimit}"
- name: evictable
  cel: >-
    (variables.annotations[?'{{ $evict }}'].orValue('').replace(' ', '') + ',{{ $ours }}').split(',', 64)
    .filter(s, s != '').join(',')
  jmespath: "join(',', split(join(',', [regex_replace_all('[^-a-z0-9,]', annotations.\"{{ $evict }}\" || '', ''), '{{ $ours }}']), ',')[?@ != ''])"
- name: defaultContainer
  cel: "variables.annotations[?'kubectl.kubernetes.io/default-container'].orValue(variables.names[0])"
  # Only where there is none: the rule "default-container".
  jmespath: "regex_replace_all('[^-a-z0-9]', names[0], '')"
{{- end -}}
