# deploy/: chart and policies.  `make test-deploy`: without a cluster.  `make test-apiserver`: injection
# by a real kube-apiserver (of `make test-cluster`'s build; etcd from Debian).  `make test-kyverno`: by
# Kyverno's engine, whose CLI takes minutes to build once.  `make golden`: what that writes for readers.
.PHONY: chart policies golden test-deploy test-apiserver test-kyverno
DEPLOY := tests/deploy
DEPLOY_PYTHON = env BUILD=$(BUILD) $(CACHE)/venv/bin/python -B

test-deploy: run-deploy_chart run-deploy_network run-deploy_docs run-deploy_keeper run-deploy_peers ## the chart: lint, unit tests, many values against schemas, generated files
# deploy_test(NAME,FILE,TOOLS,SECONDS,ARGUMENTS): a check of its own.
deploy_test = $(call add_test,deploy_$(1),$(DEPLOY)/$(2).py,all,$(DEPLOY)/tools.sh $(3) && \
	timeout $(4) $(DEPLOY_PYTHON) $(DEPLOY)/$(2).py $(5))
$(call deploy_test,chart,chart,yaml helm kubeconform unittest schemas,300)
$(call deploy_test,network,network,yaml helm,60)
$(call deploy_test,docs,docs,yaml helm,60)
$(call deploy_test,keeper,keeper,yaml helm,180)
run-deploy_keeper: $(BUILD)/stack/app # it keeps that one's session
$(call deploy_test,peers,peers,yaml helm kubeconform schemas,120)
$(call deploy_test,injection_map,injection,yaml helm,300,map)
$(call deploy_test,admission,admission,yaml helm,120)
$(call deploy_test,injection_kyverno,injection,yaml helm kyverno,900,mutatingpolicy clusterpolicy)
$(call deploy_test,golden,golden,yaml helm kyverno,300)

test-apiserver: run-deploy_injection_map run-deploy_admission ## injection of many kinds of pods by a real kube-apiserver, Pod Security included

test-kyverno: run-deploy_injection_kyverno run-deploy_golden ## the same by Kyverno's MutatingPolicy and ClusterPolicy

# As `helm package` does, but with the same bytes each time.
chart: ## the chart as an archive, for `helm push` into an OCI registry: build/charts
	$(Q)mkdir -p $(BUILD)/charts
	$(Q)packaging/archives.py chart $(BUILD)/charts

policies: all ## deploy/kyverno/, the chart's README and its list of libraries, from the chart
	$(Q)$(DEPLOY)/tools.sh yaml helm
	$(Q)$(DEPLOY_PYTHON) $(DEPLOY)/chart.py --write

golden: ## deploy/kyverno/tests/, from the policies and tests/deploy/pods
	$(Q)$(DEPLOY)/tools.sh yaml helm kyverno
	$(Q)timeout 900 $(DEPLOY_PYTHON) $(DEPLOY)/golden.py --write
