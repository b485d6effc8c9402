{{/* The policy in JMESPath, for Kyverno's ClusterPolicy.  << and >> become the braces of Kyverno. */}}

{{/* The pieces as YAML, with ${name} as Kyverno writes a variable: quoted, but for what is no string. */}}
{{- define "vcuda.jmespath.piece" -}}
{{- $text := regexReplaceAll "['\"]?\\$\\{(authOptional|requests|limits|localVolume)\\}['\"]?" (toYaml .) "<< $1 >>" -}}
{{- regexReplaceAll "\\$\\{([A-Za-z]+)\\}" $text "'<< $1 >>'" -}}
{{- end -}}

{{/*
A text of the pod's own in a patch, as a JSON string: Kyverno puts it into YAML, and looks for variables
in what it has put there, hence nothing in it that could begin one.  (Nor may a variable's text have braces.)
*/}}
{{- define "vcuda.jmespath.quoted" -}}
<< regex_replace_all_literal('[$][(]', regex_replace_all_literal('\x7b', regex_replace_all('^.(.*).$', to_string([{{ . }}]), '$1'), '\u007b'), '\u0024(') >>
{{- end -}}

{{/* The index of a container's last LD_PRELOAD: how many names stand in front of it. */}}
{{- define "vcuda.jmespath.lastPreload" -}}
- name: last
  variable:
    jmesPath: >-
      length(split(regex_replace_all('^(.*,)?LD_PRELOAD(,.*)?$',
      join(',', map(&regex_replace_all('[^A-Za-z0-9_]', name || '', 'x'), element.env || `[]`)), '$1'), ',')[1:])
{{- end -}}

{{/* (dict "secure" true): only in namespaces that refuse hostIPC. */}}
{{- define "vcuda.jmespath.match" -}}
any:
  - resources:
      kinds: [Pod]
      operations: [CREATE]
      annotations:
        tensor-fusion.ai/enabled: "true"
      {{- include "vcuda.jmespath.secure" . | indent 6 }}
  - resources:
      kinds: [Pod]
      operations: [CREATE]
      selector:
        matchLabels:
          tensor-fusion.ai/enabled: "true"
      {{- include "vcuda.jmespath.secure" . | indent 6 }}
{{- end -}}

{{- define "vcuda.jmespath.secure" -}}
{{- if .secure }}
namespaceSelector:
  matchExpressions:
    - {key: pod-security.kubernetes.io/enforce, operator: In, values: [baseline, restricted]}
{{- end -}}
{{- end -}}

{{- define "vcuda.jmespath.exclude" -}}
any:
  - resources:
      namespaces:
        {{- range append (.Values.injector.skipNamespaces | default list) .Release.Namespace | uniq }}
        - {{ . }}
        {{- end }}
  - resources:
      namespaceSelector:
        matchLabels:
          tensor-fusion.ai/injection: disabled
  # The picture that a kubelet makes of a static pod, which runs as its file says.
  - resources:
      annotations:
        kubernetes.io/config.mirror: "*"
  - resources:
      annotations:
        tensor-fusion.ai/enabled: "false"
  - resources:
      selector:
        matchLabels:
          tensor-fusion.ai/enabled: "false"
{{- end -}}

{{/* Every variable, and what is wrong with the pod as sentences. */}}
{{- define "vcuda.jmespath.context" -}}
{{- $p := "tensor-fusion.ai/" -}}
{{- $lists := "[request.object.spec.containers, inits][]" -}}
{{- range $i, $row := include "vcuda.inject.variables" . | fromYamlArray }}
{{- with $row }}
{{- if $i }}{{ "\n" }}{{ end -}}
- name: {{ .name }}
  variable:
    jmesPath: >-
      {{- .jmespath | nindent 6 }}
{{- end }}
{{- end }}
# Names as they go into an expression: what no container can be called is left out.
- name: safeNames
  variable:
    jmesPath: "map(&regex_replace_all('[^-a-z0-9]', @, ''), [names, initNames][])"
- name: problems
  variable:
    jmesPath: >-
      [
      {{- range include "vcuda.inject.words" . | fromYamlArray }}
      (annotations."{{ $p }}{{ .key }}" != `null` && !regex_match('{{ .form }}', to_string(annotations."{{ $p }}{{ .key }}")))
      && '{{ $p }}{{ .key }} takes {{ .takes }}' || `null`,
      {{- end }}
      (labels."{{ $p }}enabled" != `null` && !contains(['true', 'false'], labels."{{ $p }}enabled"))
      && 'the label {{ $p }}enabled takes true or false' || `null`,
      unknown
      && join('', [regex_replace_all('[^-A-Za-z0-9._/]', unknown[0], ''), ': there is no such annotation; docs/KUBERNETES.md lists them']) || `null`,
      unknownLabels
      && join('', [regex_replace_all('[^-A-Za-z0-9._/]', unknownLabels[0], ''), ': there is no such label; annotations are a list of their own']) || `null`,
      {{- range list "memory" "cpu" }}
      {{- $limit := printf "annotations.\"%ssidecar-%s-limit\"" $p . }}
      {{- $request := printf "annotations.\"%ssidecar-%s-request\"" $p . }}
      ({{ $limit }} && {{ $request }} && regex_match('^[1-9.][0-9.]*(m|k|M|G|T|Ki|Mi|Gi|Ti)?$', {{ $limit }})
      && regex_match('^[1-9.][0-9.]*(m|k|M|G|T|Ki|Mi|Gi|Ti)?$', {{ $request }}) && divide({{ $limit }}, {{ $request }}) < `1`)
      && '{{ $p }}sidecar-{{ . }}-limit is below {{ $p }}sidecar-{{ . }}-request' || `null`,
      {{- end }}
      (contains(['if-needed', 'always'], gpuSpread) && gpuCount == '')
      && '{{ $p }}gpu-spread: how many GPUs are to be spread? {{ $p }}gpu-count says it' || `null`,
      slices
      && 'tensor-fusion.ai: a container asks for nvidia.com/mig-…, a slice of a GPU of its own node; take it out, and say the memory by {{ $p }}vram-limit' || `null`,
      ([wanted, unwanted][] | [?!contains(`<< safeNames >>`, @)])
      && '{{ $p }}inject-container or exclude-container names a container that the pod has not' || `null`,
      length([targets, initTargets][]) == `0`
      && 'tensor-fusion.ai: every container of the pod is skipped or excluded' || `null`,
      request.object.spec.volumes[?name == 'tensor-fusion-libs' || name == 'tensor-fusion-shm' || name == 'tensor-fusion-token' || name == 'tensor-fusion-local']
      && 'tensor-fusion.ai: the pod has a volume of its own called tensor-fusion-libs, -shm, -token or -local' || `null`,
      ({{ $lists }} | [?name == 'tensor-fusion-init'])
      && 'tensor-fusion.ai: the pod has a container of its own called tensor-fusion-init' || `null`,
      ({{ $lists }}.volumeMounts[] | [?contains(['tensor-fusion-libs', 'tensor-fusion-shm', 'tensor-fusion-token', 'tensor-fusion-local'], name) && !contains(['/lib/vcuda', '/run/tensor-fusion', '/usr/local/bin/nvidia-smi', '/etc/ld.so.preload'], mountPath)])
      && 'tensor-fusion.ai: a container mounts a volume of injection\'s: tensor-fusion-libs, -shm, -token or -local' || `null`,
      ({{ $lists }} | [?length(volumeMounts[?mountPath == '/lib/vcuda'] || `[]`) > `1` || length(volumeMounts[?mountPath == '/run/tensor-fusion'] || `[]`) > `1`])
      && 'tensor-fusion.ai: a container mounts a volume of injection\'s: tensor-fusion-libs, -shm, -token or -local' || `null`,
      ({{ $lists }}.volumeMounts[] | [?!contains(['tensor-fusion-libs', 'tensor-fusion-shm'], name) && regex_match('{{ include "vcuda.inject.ourPaths" . }}', mountPath)])
      && 'tensor-fusion.ai: a container mounts something of its own at /lib/vcuda or /run/tensor-fusion' || `null`,
      (request.object.metadata.labels."{{ $p }}component" || 'client') != 'client'
      && '{{ $p }}component: injection sets this label to client, and the pod has another' || `null`,
      ((request.object.spec.os.name || 'linux') != 'linux' || (nodes."kubernetes.io/os" || 'linux') != 'linux')
      && 'tensor-fusion.ai: only pods of Linux can be injected' || `null`,
      (nodes."kubernetes.io/arch" || 'amd64') != 'amd64'
      && 'tensor-fusion.ai: only pods for amd64 can be injected' || `null`
      {{- if not .Values.injector.server }},
      (!(annotations."{{ $p }}server") && (request.object.spec.dnsPolicy == 'Default'
      || (request.object.spec.hostNetwork == `true` && (request.object.spec.dnsPolicy || 'ClusterFirst') == 'ClusterFirst')))
      && '{{ include "vcuda.inject.noName" . }}' || `null`
      {{- end }}
      ][]
{{- end -}}

{{/* (dict "root" $ "list" "containers"|"initContainers"): the foreach entries for those containers. */}}
{{- define "vcuda.jmespath.container" -}}
{{- $list := .list -}}
{{- $init := eq .list "initContainers" -}}
{{- $pieces := include "vcuda.inject.pieces" .root | fromYaml -}}
{{- $chosen := printf "{key: \"<< element.name >>\", operator: AnyIn, value: \"<< %s >>\"}" (ternary "initTargets" "targets" $init) -}}
{{- $env := "{key: \"<< preloadMode >>\", operator: AnyIn, value: [env, both]}" -}}
{{- $own := "element.env[?name == 'LD_PRELOAD']" -}}
{{- if not $init }}
# A list of the program's own stays, behind ours.  Of several entries the last counts.
- list: request.object.spec.{{ $list }}
  context:
    {{- include "vcuda.jmespath.lastPreload" . | nindent 4 }}
  preconditions:
    all:
      - {{ $chosen }}
      - {{ $env }}
      - {key: "<< !({{ $own }}) || !(!(({{ $own }} | [-1]).valueFrom)) >>", operator: Equals, value: false}
      - {key: "<< contains(({{ $own }} | [-1]).value || '', '/libvcuda.so') >>", operator: Equals, value: false}
  patchesJson6902: |-
    - op: add
      path: /spec/{{ $list }}/<< elementIndex >>/env/<< last >>/value
      value: {{ printf "join('', ['%s', ((%s | [-1]).value && ':') || '', (%s | [-1]).value || ''])" (include "vcuda.inject.preload" .root) $own $own | include "vcuda.jmespath.quoted" }}
# One that comes from a ConfigMap or such keeps its source, under another name.
- list: request.object.spec.{{ $list }}
  context:
    {{- include "vcuda.jmespath.lastPreload" . | nindent 4 }}
  preconditions:
    all:
      - {{ $chosen }}
      - {{ $env }}
      - {key: "<< !(({{ $own }} | [-1]).valueFrom) >>", operator: Equals, value: false}
  patchesJson6902: |-
    - op: replace
      path: /spec/{{ $list }}/<< elementIndex >>/env/<< last >>/name
      value: VCUDA_OWN_PRELOAD
    - op: add
      path: /spec/{{ $list }}/<< elementIndex >>/env/-
      value: {name: LD_PRELOAD, value: "{{ include "vcuda.inject.preload" .root }}:\$(VCUDA_OWN_PRELOAD)"}
- list: request.object.spec.{{ $list }}{{ if $init }} || `[]`{{ end }}
  preconditions:
    all:
      - {{ $chosen }}
      - {{ $env }}
      - {key: "<< !({{ $own }}) >>", operator: Equals, value: true}
  patchesJson6902: |-
    - op: add
      path: /spec/{{ $list }}/<< elementIndex >>/env/-
      value: {name: LD_PRELOAD, value: {{ include "vcuda.inject.preload" .root | quote }}}
{{- end }}
{{- range $name, $value := .root.Values.injector.env }}
- list: request.object.spec.{{ $list }}{{ if $init }} || `[]`{{ end }}
  preconditions:
    all:
      - {{ $chosen }}
      - {key: "<< !(element.env[?name == '{{ $name }}']) >>", operator: Equals, value: true}
  patchesJson6902: |-
    - op: add
      path: /spec/{{ $list }}/<< elementIndex >>/env/-
      value: {{ dict "name" $name "value" (toString $value) | toJson }}
{{- end }}
{{- range $resource := .root.Values.injector.dropResources }}
{{- range $kind := list "limits" "requests" }}
- list: request.object.spec.{{ $list }}{{ if $init }} || `[]`{{ end }}
  preconditions:
    all:
      - {{ $chosen }}
      - {key: '<< !(!(element.resources.{{ $kind }}."{{ $resource }}")) >>', operator: Equals, value: true}
  patchesJson6902: |-
    - op: remove
      path: /spec/{{ $list }}/<< elementIndex >>/resources/{{ $kind }}/{{ $resource | replace "~" "~0" | replace "/" "~1" }}
{{- end }}
{{- end }}
- list: request.object.spec.{{ $list }}{{ if $init }} || `[]`{{ end }}
  preconditions:
    all:
      - {{ $chosen }}
  patchesJson6902: |-
    {{- range $pieces.mounts }}
    {{- if not .subPath }}
    - op: add
      path: /spec/{{ $list }}/<< elementIndex >>/volumeMounts/-
      value: {{ toJson . }}
    {{- end }}
    {{- end }}
{{- range $pieces.mounts }}
{{- if .subPath }}
- list: request.object.spec.{{ $list }}{{ if $init }} || `[]`{{ end }}
  preconditions:
    all:
      - {{ $chosen }}
      - {key: "<< !(element.volumeMounts[?starts_with('{{ trimPrefix "/" .mountPath }}/', join('', [trim(mountPath, '/'), '/']))]) >>", operator: Equals, value: true}
  patchesJson6902: |-
    - op: add
      path: /spec/{{ $list }}/<< elementIndex >>/volumeMounts/-
      value: {{ toJson . }}
{{- end }}
{{- end }}
{{- with $pieces.preloadFile }}
- list: request.object.spec.{{ $list }}{{ if $init }} || `[]`{{ end }}
  preconditions:
    all:
      - {{ $chosen }}
      - {key: "<< preloadMode >>", operator: AnyIn, value: {{ ternary "[env, file, both]" "[file, both]" $init }}}
      - {key: "<< !(element.volumeMounts[?mountPath == '{{ .mountPath }}']) >>", operator: Equals, value: true}
  patchesJson6902: |-
    - op: add
      path: /spec/{{ $list }}/<< elementIndex >>/volumeMounts/-
      value: {{ toJson . }}
{{- end }}
{{- end -}}

{{- define "vcuda.jmespath.policy" -}}
{{- $pieces := include "vcuda.inject.pieces" . | fromYaml -}}
{{- $native := merge (dict "restartPolicy" "Always") (deepCopy $pieces.sidecar) -}}
{{- $once := "{key: vcuda-client, operator: AnyNotIn, value: \"<< request.object.spec.[initContainers, containers][].name >>\"}" -}}
# Injection by Kyverno.  From 1.17 on Kyverno prefers a MutatingPolicy, which injector.engine writes too.
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: {{ include "vcuda.fullname" . }}-inject
  labels:
    {{- include "vcuda.labels" . | nindent 4 }}
  annotations:
    # Pods only: templates of Deployments and others reach their pods with the annotation.
    pod-policies.kyverno.io/autogen-controllers: none
    policies.kyverno.io/title: Inject vcuda
    policies.kyverno.io/subject: Pod
    policies.kyverno.io/description: >-
      Gives pods with the annotation tensor-fusion.ai/enabled=true a GPU of another machine.
spec:
  background: false
  webhookConfiguration:
    failurePolicy: {{ .Values.injector.failurePolicy }}
    timeoutSeconds: 10
  rules:
    # A namespace that wants all of its pods injected: those that say nothing themselves.
    - name: namespace-wide
      match:
        any:
          - resources:
              kinds: [Pod]
              operations: [CREATE]
              namespaceSelector:
                matchLabels:
                  tensor-fusion.ai/injection: enabled
      exclude:
        {{- include "vcuda.jmespath.exclude" . | nindent 8 }}
      preconditions:
        all:
          - {{ $once }}
          - {key: tensor-fusion.ai/enabled, operator: AnyNotIn, value: "<< keys(merge(request.object.metadata.annotations || `{}`, request.object.metadata.labels || `{}`)) >>"}
      mutate:
        patchesJson6902: |-
          - op: add
            path: /metadata/annotations/tensor-fusion.ai~1enabled
            value: "true"
    {{- if eq (include "vcuda.ipcMode" .) "auto" }}
    # Pod Security's baseline and restricted refuse hostIPC.
    - name: namespace
      match:
        {{- include "vcuda.jmespath.match" (dict "secure" true) | nindent 8 }}
      exclude:
        {{- include "vcuda.jmespath.exclude" . | nindent 8 }}
      preconditions:
        all:
          - {{ $once }}
          - {key: '<< !(request.object.metadata.annotations."tensor-fusion.ai/ipc-mode") >>', operator: Equals, value: true}
      mutate:
        patchesJson6902: |-
          - op: add
            path: /metadata/annotations/tensor-fusion.ai~1ipc-mode
            value: pod
    {{- end }}
    {{- if .Values.agent.localSocket }}
    # They refuse hostPath too.
    - name: namespace-local
      match:
        {{- include "vcuda.jmespath.match" (dict "secure" true) | nindent 8 }}
      exclude:
        {{- include "vcuda.jmespath.exclude" . | nindent 8 }}
      preconditions:
        all:
          - {{ $once }}
          - {key: "<< request.object.metadata.annotations.\"tensor-fusion.ai/protocol\" || '{{ .Values.injector.protocol }}' >>", operator: Equals, value: auto}
      mutate:
        patchesJson6902: |-
          - op: add
            path: /metadata/annotations/tensor-fusion.ai~1protocol
            value: native
    {{- end }}
    - name: default-container
      match: &match
        {{- include "vcuda.jmespath.match" dict | nindent 8 }}
      exclude: &exclude
        {{- include "vcuda.jmespath.exclude" . | nindent 8 }}
      context: &context
        {{- include "vcuda.jmespath.context" . | nindent 8 }}
      preconditions:
        all:
          - {{ $once }}
          - {key: '<< !(request.object.metadata.annotations."kubectl.kubernetes.io/default-container") >>', operator: Equals, value: true}
      mutate:
        patchesJson6902: |-
          - op: add
            path: /metadata/annotations/kubectl.kubernetes.io~1default-container
            value: '<< defaultContainer >>'
    - name: containers
      match: *match
      exclude: *exclude
      context: *context
      preconditions: &once
        all:
          # A pod that has the sidecar was injected, or brings its own.
          - {{ $once }}
          - {key: "<< length(problems) >>", operator: Equals, value: 0}
      mutate:
        foreach:
          {{- include "vcuda.jmespath.container" (dict "root" . "list" "containers") | nindent 10 }}
    - name: init-containers
      match: *match
      exclude: *exclude
      context: *context
      preconditions: *once
      mutate:
        foreach:
          {{- include "vcuda.jmespath.container" (dict "root" . "list" "initContainers") | nindent 10 }}
    {{- range $form := ternary (list "native" "plain") (list "plain") (eq (include "vcuda.native" $) "true") }}
    - name: pod-{{ $form }}
      match: *match
      exclude: *exclude
      context: *context
      preconditions:
        all:
          - {{ $once }}
          - {key: "<< length(problems) >>", operator: Equals, value: 0}
          - {key: "<< native >>", operator: Equals, value: {{ eq $form "native" }}}
      mutate:
        patchesJson6902: |-
          {{- if eq $form "native" }}
          - op: add
            path: /spec/initContainers/0
            value:
              {{- include "vcuda.jmespath.piece" $native | nindent 14 }}
          {{- else }}
          - op: add
            path: /spec/containers/-
            value:
              {{- include "vcuda.jmespath.piece" $pieces.sidecar | nindent 14 }}
          {{- end }}
          - op: add
            path: /spec/initContainers/0
            value:
              {{- include "vcuda.jmespath.piece" $pieces.install | nindent 14 }}
          {{- range $pieces.volumes }}
          - op: add
            path: /spec/volumes/-
            value:
              {{- include "vcuda.jmespath.piece" . | nindent 14 }}
          {{- end }}
          {{- range $.Values.image.pullSecrets }}
          - op: add
            path: /spec/imagePullSecrets/-
            value: {name: {{ . }}}
          {{- end }}
          - op: add
            path: /spec/hostIPC
            value: << hostIPC >>
          - op: add
            path: /spec/hostPID
            value: << hostPID >>
          {{- range $kind := list "annotations" "labels" }}
          {{- range $key, $value := omit (get $pieces $kind) "kubectl.kubernetes.io/default-container" }}
          - op: add
            path: /metadata/{{ $kind }}/{{ $key | replace "~" "~0" | replace "/" "~1" }}
            value: {{ include "vcuda.jmespath.piece" $value }}
          {{- end }}
          {{- end }}
    {{- end }}
    # Says why an annotated pod was not injected.
    - name: refuse
      # Whatever it says: words that mean nothing are refused.
      match:
        any:
          - resources:
              kinds: [Pod]
              operations: [CREATE]
              annotations:
                tensor-fusion.ai/enabled: "*"
          - resources:
              kinds: [Pod]
              operations: [CREATE]
              selector:
                matchExpressions:
                  - {key: tensor-fusion.ai/enabled, operator: Exists}
      exclude: *exclude
      context: *context
      preconditions:
        all:
          - {{ $once }}
          {{- if ne .Values.injector.failurePolicy "Fail" }}
          - {key: "<< length(problems) >>", operator: GreaterThan, value: 0}
          {{- end }}
      validate:
        failureAction: Enforce
        message: "<< problems[0] || 'tensor-fusion.ai/enabled: the pod was not injected' >>"
        deny: {}
---
# A warning, which kubectl shows.
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: {{ include "vcuda.fullname" . }}-notice
  labels:
    {{- include "vcuda.labels" . | nindent 4 }}
  annotations:
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  background: false
  emitWarning: true
  webhookConfiguration:
    failurePolicy: Ignore
    timeoutSeconds: 10
  rules:
    - name: notice
      match:
        {{- include "vcuda.jmespath.match" dict | nindent 8 }}
      exclude:
        {{- include "vcuda.jmespath.exclude" . | nindent 8 }}
      context:
        - name: passed
          variable:
            jmesPath: "keys(request.object.metadata.annotations || `{}`)[?regex_match('{{ include "vcuda.inject.passed" . }}', @)]"
      preconditions:
        all:
          - {key: "<< length(passed) >>", operator: GreaterThan, value: 0}
      validate:
        failureAction: Audit
        message: "<< join(', ', passed) >>: {{ include "vcuda.inject.notice" . }}"
        deny: {}
{{- end -}}
