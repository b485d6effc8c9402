{{/* The policies in CEL: Kubernetes' own and Kyverno's MutatingPolicy take the same expressions. */}}

{{/*
(dict "value" VALUE "at" INDENT): a CEL literal.  Values of a map and a list have one type in
Kubernetes' CEL, hence dyn().  Maps and not Object{}: a list of those in a patch brings the API server
down (kubernetes/kubernetes#139032).
*/}}
{{- define "vcuda.cel" -}}
{{- $at := .at -}}
{{- $v := .value -}}
{{- $in := printf "\n%s" (repeat (int (add $at 2)) " ") -}}
{{- if kindIs "map" $v -}}
{{- $parts := list -}}
{{- range $key, $item := $v -}}
{{- $parts = append $parts (printf "%s: dyn(%s)" (toJson $key) (include "vcuda.cel" (dict "value" $item "at" (add $at 2)))) -}}
{{- end -}}
{{- if gt (len (join ", " $parts)) 76 -}}
{{ "{" }}{{ $in }}{{ join (printf ",%s" $in) $parts }}{{ "}" }}
{{- else -}}
{{ "{" }}{{ join ", " $parts }}{{ "}" }}
{{- end -}}
{{- else if kindIs "slice" $v -}}
{{- $parts := list -}}
{{- range $item := $v -}}
{{- $parts = append $parts (printf "dyn(%s)" (include "vcuda.cel" (dict "value" $item "at" (add $at 2)))) -}}
{{- end -}}
{{- if gt (len (join ", " $parts)) 76 -}}
[{{ $in }}{{ join (printf ",%s" $in) $parts }}]
{{- else -}}
[{{ join ", " $parts }}]
{{- end -}}
{{- else if kindIs "string" $v -}}
{{- if regexMatch "^\\$\\{[A-Za-z]+\\}$" $v -}}
variables.{{ trimSuffix "}" (trimPrefix "${" $v) }}
{{- else -}}
{{ toJson $v }}
{{- end -}}
{{- else if kindIs "bool" $v -}}
{{ $v }}
{{- else -}}
{{ int64 $v }}
{{- end -}}
{{- end -}}

{{/*
What a pod must be to be injected, as matchConditions; (dict "asked" true): or be refused; (dict "wide" true):
in a namespace that wants all of its pods injected.  (A condition does not see the labels of a namespace, so
those have a policy of their own.)
*/}}
{{- define "vcuda.cel.conditions" -}}
{{- $on := "tensor-fusion.ai/enabled" -}}
{{- if .wide }}
- name: says-nothing
  expression: >-
    !(has(object.metadata.annotations) && '{{ $on }}' in object.metadata.annotations)
    && !(has(object.metadata.labels) && '{{ $on }}' in object.metadata.labels)
{{- else if .asked }}
# Whatever it says: words that mean nothing are refused.
- name: asked
  expression: >-
    has(object.metadata.annotations) && '{{ $on }}' in object.metadata.annotations
    || has(object.metadata.labels) && '{{ $on }}' in object.metadata.labels
{{- else }}
- name: enabled
  expression: >-
    has(object.metadata.annotations) && object.metadata.annotations[?'{{ $on }}'].orValue('') == 'true'
    || has(object.metadata.labels) && object.metadata.labels[?'{{ $on }}'].orValue('') == 'true'
{{- end }}
{{- if not .wide }}
- name: not-disabled
  expression: >-
    !(has(object.metadata.annotations) && object.metadata.annotations[?'{{ $on }}'].orValue('') == 'false')
    && !(has(object.metadata.labels) && object.metadata.labels[?'{{ $on }}'].orValue('') == 'false')
{{- end }}
# The picture that a kubelet makes of a static pod, which runs as its file says.
- name: not-static
  expression: "!(has(object.metadata.annotations) && 'kubernetes.io/config.mirror' in object.metadata.annotations)"
# A pod that has the sidecar was injected, or brings its own.
- name: not-injected
  expression: >-
    !object.spec.containers.exists(c, c.name == 'vcuda-client')
    && !(has(object.spec.initContainers) && object.spec.initContainers.exists(c, c.name == 'vcuda-client'))
{{- end -}}

{{/* (dict "root" $ "wide" true): namespaces that want all of their pods injected; without it, all but those that want none. */}}
{{- define "vcuda.cel.constraints" -}}
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values:
        {{- range append (.root.Values.injector.skipNamespaces | default list) .root.Release.Namespace | uniq }}
        - {{ . }}
        {{- end }}
    - key: tensor-fusion.ai/injection
      {{- if .wide }}
      operator: In
      values: [enabled]
      {{- else }}
      operator: NotIn
      values: [disabled]
      {{- end }}
resourceRules:
  - apiGroups: [""]
    apiVersions: [v1]
    operations: [CREATE]
    resources: [pods]
{{- end -}}

{{/* Every variable, and what is wrong with the pod as sentences. */}}
{{- define "vcuda.cel.variables" -}}
{{- $p := "tensor-fusion.ai/" -}}
{{- $root := . -}}
{{- range $i, $row := include "vcuda.inject.variables" . | fromYamlArray }}
{{- with $row }}
{{- if $i }}{{ "\n" }}{{ end -}}
- name: {{ .name }}
  expression: >-
    {{- .cel | nindent 4 }}
{{- end }}
{{- end }}
- name: chosen
  expression: "object.spec.containers.filter(c, c.name in variables.targets)"
- name: chosenInits
  expression: "variables.inits.filter(c, c.name in variables.initTargets)"
- name: problems
  expression: >-
    [
    {{- range include "vcuda.inject.words" . | fromYamlArray }}
      '{{ $p }}{{ .key }}' in variables.annotations && !variables.annotations['{{ $p }}{{ .key }}'].matches({{ .form | toJson }})
        ? '{{ $p }}{{ .key }} takes {{ .takes }}' : '',
    {{- end }}
      variables.labels[?'{{ $p }}enabled'].orValue('true') in ['true', 'false']
        ? '' : 'the label {{ $p }}enabled takes true or false',
      size(variables.unknown) > 0
        ? variables.unknown[0] + ': there is no such annotation; docs/KUBERNETES.md lists them' : '',
      size(variables.unknownLabels) > 0
        ? variables.unknownLabels[0] + ': there is no such label; annotations are a list of their own' : '',
      {{- range list "memory" "cpu" }}
      isQuantity(variables.annotations[?'{{ $p }}sidecar-{{ . }}-limit'].orValue(''))
        && isQuantity(variables.annotations[?'{{ $p }}sidecar-{{ . }}-request'].orValue(''))
        && quantity(variables.annotations['{{ $p }}sidecar-{{ . }}-limit']).isLessThan(quantity(variables.annotations['{{ $p }}sidecar-{{ . }}-request']))
        ? '{{ $p }}sidecar-{{ . }}-limit is below {{ $p }}sidecar-{{ . }}-request' : '',
      {{- end }}
      variables.gpuSpread in ['if-needed', 'always'] && variables.gpuCount == ''
        ? '{{ $p }}gpu-spread: how many GPUs are to be spread? {{ $p }}gpu-count says it' : '',
      variables.slices
        ? 'tensor-fusion.ai: a container asks for nvidia.com/mig-…, a slice of a GPU of its own node; take it out, and say the memory by {{ $p }}vram-limit' : '',
      (variables.wanted + variables.unwanted).exists(n, !(n in variables.names) && !(n in variables.initNames))
        ? '{{ $p }}inject-container or exclude-container names a container that the pod has not' : '',
      size(variables.targets) + size(variables.initTargets) == 0
        ? 'tensor-fusion.ai: every container of the pod is skipped or excluded' : '',
      has(object.spec.volumes) && object.spec.volumes.exists(v, v.name in ['tensor-fusion-libs', 'tensor-fusion-shm', 'tensor-fusion-token', 'tensor-fusion-local'])
        ? 'tensor-fusion.ai: the pod has a volume of its own called tensor-fusion-libs, -shm, -token or -local' : '',
      'tensor-fusion-init' in variables.names || 'tensor-fusion-init' in variables.initNames
        ? 'tensor-fusion.ai: the pod has a container of its own called tensor-fusion-init' : '',
      (object.spec.containers + variables.inits).exists(c, has(c.volumeMounts) && c.volumeMounts.exists(m, m.name in ['tensor-fusion-libs', 'tensor-fusion-shm', 'tensor-fusion-token', 'tensor-fusion-local']))
        ? 'tensor-fusion.ai: a container mounts a volume of injection\'s: tensor-fusion-libs, -shm, -token or -local' : '',
      (object.spec.containers + variables.inits).exists(c, has(c.volumeMounts) && c.volumeMounts.exists(m, m.mountPath.matches({{ include "vcuda.inject.ourPaths" . | squote }})))
        ? 'tensor-fusion.ai: a container mounts something of its own at /lib/vcuda or /run/tensor-fusion' : '',
      has(object.metadata.labels) && object.metadata.labels[?'{{ $p }}component'].orValue('client') != 'client'
        ? '{{ $p }}component: injection sets this label to client, and the pod has another' : '',
      has(object.spec.os) && object.spec.os.name != 'linux' || variables.nodes[?'kubernetes.io/os'].orValue('linux') != 'linux'
        ? 'tensor-fusion.ai: only pods of Linux can be injected' : '',
      variables.nodes[?'kubernetes.io/arch'].orValue('amd64') != 'amd64'
        ? 'tensor-fusion.ai: only pods for amd64 can be injected' : ''
      {{- if not .Values.injector.server }},
      !('{{ $p }}server' in variables.annotations) && (has(object.spec.dnsPolicy) && object.spec.dnsPolicy == 'Default'
        || has(object.spec.hostNetwork) && object.spec.hostNetwork && (!has(object.spec.dnsPolicy) || object.spec.dnsPolicy == 'ClusterFirst'))
        ? '{{ include "vcuda.inject.noName" . }}' : ''
      {{- end }}
    ].filter(s, s != '')
{{- end -}}

{{/* (dict "root" $ "list" "containers"|"initContainers"): patches of those containers. */}}
{{- define "vcuda.cel.container" -}}
{{- $pieces := include "vcuda.inject.pieces" .root | fromYaml -}}
{{- $preload := include "vcuda.inject.preload" .root -}}
{{- $init := eq .list "initContainers" -}}
{{- $chosen := ternary "variables.chosenInits" "variables.chosen" $init -}}
{{- $names := ternary "variables.initNames" "variables.names" $init -}}
{{- $path := printf "\"/spec/%s/\" + string(%s.indexOf(c.name)) + " .list $names -}}
+ {{ $chosen }}.filter(c, !has(c.env)).map(c,
  JSONPatch{op: "add", path: {{ $path }}"/env", value: []})
+ {{ $chosen }}.filter(c, !has(c.volumeMounts)).map(c,
  JSONPatch{op: "add", path: {{ $path }}"/volumeMounts", value: []})
{{- if not $init }}
+ variables.preloadNew.map(c,
  JSONPatch{op: "add", path: {{ $path }}"/env/-", value: {"name": "LD_PRELOAD", "value": variables.preload}})
// A list of the program's own stays, behind ours.
+ variables.preloadOwn.filter(c, !has(c.env[c.env.map(e, e.name).lastIndexOf("LD_PRELOAD")].valueFrom)).map(c,
  JSONPatch{op: "add", path: {{ $path }}"/env/" + string(c.env.map(e, e.name).lastIndexOf("LD_PRELOAD")) + "/value",
    value: variables.preload + c.env.filter(e, e.name == "LD_PRELOAD").map(e, has(e.value) && e.value != "" ? ":" + e.value : "")[
      c.env.filter(e, e.name == "LD_PRELOAD").size() - 1]})
// One that comes from a ConfigMap or such keeps its source, under another name.
+ variables.preloadOwn.filter(c, has(c.env[c.env.map(e, e.name).lastIndexOf("LD_PRELOAD")].valueFrom)).map(c,
  JSONPatch{op: "replace", path: {{ $path }}"/env/" + string(c.env.map(e, e.name).lastIndexOf("LD_PRELOAD")) + "/name", value: "VCUDA_OWN_PRELOAD"})
+ variables.preloadOwn.filter(c, has(c.env[c.env.map(e, e.name).lastIndexOf("LD_PRELOAD")].valueFrom)).map(c,
  JSONPatch{op: "add", path: {{ $path }}"/env/-", value: {"name": "LD_PRELOAD", "value": variables.preload + ":$(VCUDA_OWN_PRELOAD)"}})
{{- end }}
{{- range $name, $value := .root.Values.injector.env }}
+ {{ $chosen }}.filter(c, !has(c.env) || !c.env.exists(e, e.name == {{ toJson $name }})).map(c,
  JSONPatch{op: "add", path: {{ $path }}"/env/-", value: {{ dict "name" $name "value" (toString $value) | toJson }}})
{{- end }}
{{- range $resource := .root.Values.injector.dropResources }}
{{- range $kind := list "limits" "requests" }}
+ {{ $chosen }}.filter(c, has(c.resources) && has(c.resources.{{ $kind }}) && {{ toJson $resource }} in c.resources.{{ $kind }}).map(c,
  JSONPatch{op: "remove", path: {{ $path }}"/resources/{{ $kind }}/{{ $resource | replace "~" "~0" | replace "/" "~1" }}"})
{{- end }}
{{- end }}
{{- range $pieces.mounts }}
+ {{ $chosen }}
{{- if .subPath }}.filter(c, !has(c.volumeMounts) || !c.volumeMounts.exists(m, {{ toJson (printf "%s/" .mountPath) }}.startsWith(m.mountPath.endsWith("/") ? m.mountPath : m.mountPath + "/")))
{{- end }}.map(c,
  JSONPatch{op: "add", path: {{ $path }}"/volumeMounts/-", value: {{ include "vcuda.cel" (dict "value" . "at" 4) }}})
{{- end }}
{{- with $pieces.preloadFile }}
+ {{ $chosen }}.filter(c, {{ ternary "variables.preloadMode != \"none\"" "variables.preloadFile" $init }} && (!has(c.volumeMounts) || !c.volumeMounts.exists(m, m.mountPath == {{ toJson .mountPath }}))).map(c,
  JSONPatch{op: "add", path: {{ $path }}"/volumeMounts/-", value: {{ include "vcuda.cel" (dict "value" . "at" 4) }}})
{{- end }}
{{- end -}}

{{/* (dict "root" $ "wide" WIDE): the whole patch. */}}
{{- define "vcuda.cel.patch" -}}
{{- $wide := .wide -}}
{{- with .root -}}
{{- $pieces := include "vcuda.inject.pieces" . | fromYaml -}}
{{- $plain := $pieces.sidecar -}}
{{- $native := merge (dict "restartPolicy" "Always") (deepCopy $plain) -}}
size(variables.problems) > 0 ? [] : (
[]
{{ include "vcuda.cel.container" (dict "root" . "list" "containers") }}
{{ include "vcuda.cel.container" (dict "root" . "list" "initContainers") }}
+ (has(object.spec.initContainers) ? [] : [JSONPatch{op: "add", path: "/spec/initContainers", value: []}])
{{- if include "vcuda.native" . }}
+ (variables.native ? [JSONPatch{op: "add", path: "/spec/initContainers/0", value: {{ include "vcuda.cel" (dict "value" $native "at" 2) }}}] : [])
{{- end }}
+ [JSONPatch{op: "add", path: "/spec/initContainers/0", value: {{ include "vcuda.cel" (dict "value" $pieces.install "at" 2) }}}]
+ (variables.native ? [] : [JSONPatch{op: "add", path: "/spec/containers/-", value: {{ include "vcuda.cel" (dict "value" $plain "at" 2) }}}])
+ (has(object.spec.volumes) ? [] : [JSONPatch{op: "add", path: "/spec/volumes", value: []}])
{{- range $pieces.volumes }}
+ [JSONPatch{op: "add", path: "/spec/volumes/-", value: {{ include "vcuda.cel" (dict "value" . "at" 2) }}}]
{{- end }}
{{- if .Values.image.pullSecrets }}
+ (has(object.spec.imagePullSecrets) ? [] : [JSONPatch{op: "add", path: "/spec/imagePullSecrets", value: []}])
{{- range .Values.image.pullSecrets }}
+ (has(object.spec.imagePullSecrets) && object.spec.imagePullSecrets.exists(s, s.name == {{ toJson . }}) ? []
    : [JSONPatch{op: "add", path: "/spec/imagePullSecrets/-", value: {"name": {{ toJson . }}}}])
{{- end }}
{{- end }}
+ [JSONPatch{op: "add", path: "/spec/hostIPC", value: variables.hostIPC}]
+ [JSONPatch{op: "add", path: "/spec/hostPID", value: variables.hostPID}]
{{- range $kind := list "annotations" "labels" }}
+ (has(object.metadata.{{ $kind }}) ? [] : [JSONPatch{op: "add", path: "/metadata/{{ $kind }}", value: {}}])
{{- range $key, $value := get $pieces $kind }}
+ [JSONPatch{op: "add", path: "/metadata/{{ $kind }}/{{ $key | replace "~" "~0" | replace "/" "~1" }}", value: {{ include "vcuda.cel" (dict "value" $value "at" 2) }}}]
{{- end }}
{{- end }}
{{- if $wide }}
+ [JSONPatch{op: "add", path: "/metadata/annotations/tensor-fusion.ai~1enabled", value: "true"}]
{{- end }}
)
{{- end -}}
{{- end -}}

{{- define "vcuda.cel.extra" -}}
- name: preload
  expression: {{ include "vcuda.inject.preload" . | toJson | squote }}
- name: preloadEnv
  expression: "variables.preloadMode in ['env', 'both']"
- name: preloadFile
  expression: "variables.preloadMode in ['file', 'both']"
# Containers that get the variable, and those that have it already; the last entry of a name counts.
- name: preloadNew
  expression: "variables.chosen.filter(c, variables.preloadEnv && !(has(c.env) && c.env.exists(e, e.name == 'LD_PRELOAD')))"
- name: preloadOwn
  expression: >-
    variables.chosen.filter(c, variables.preloadEnv && has(c.env) && c.env.exists(e, e.name == 'LD_PRELOAD')
    && !c.env.filter(e, e.name == 'LD_PRELOAD').map(e, has(e.value) && e.value.contains('/libvcuda.so'))[
      c.env.filter(e, e.name == 'LD_PRELOAD').size() - 1])
{{- end -}}

{{/* Annotations of TensorFusion's operator are taken, and it is said that nothing comes of them. */}}
{{- define "vcuda.cel.notice" -}}
{{- $p := include "vcuda.inject.passed" . -}}
matchConstraints:
  {{- include "vcuda.cel.constraints" (dict "root" .) | nindent 2 }}
matchConditions:
  {{- range include "vcuda.cel.conditions" dict | fromYamlArray }}
  {{- if has .name (list "enabled" "not-disabled") }}
  - name: {{ .name }}
    expression: >-
      {{- .expression | nindent 6 }}
  {{- end }}
  {{- end }}
variables:
  - name: passed
    expression: "has(object.metadata.annotations) ? object.metadata.annotations.filter(k, k.matches('{{ $p }}')) : []"
validations:
  - expression: "size(variables.passed) == 0"
    messageExpression: "variables.passed.join(', ') + ': {{ include "vcuda.inject.notice" . }}'"
{{- end -}}

{{/* What a refused pod is told: an annotated pod that reaches validation was not injected. */}}
{{- define "vcuda.cel.message" -}}
size(variables.problems) > 0 ? variables.problems[0] : 'tensor-fusion.ai/enabled: the pod was not injected; is the policy {{ . }} there?'
{{- end -}}
