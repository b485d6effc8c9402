# deploy/: chart and policies.  `make test-deploy`: without a cluster.  `make test-apiserver`: injection
# by a real kube-apiserver (of `make test-cluster`'s build; etcd from Debian).  `make test-kyverno`: by
# Kyverno's engine, whose CLI takes minutes to build once.  `make golden`: what that writes for readers.
.PHONY: chart policies golden test-deploy test-apiserver test-kyverno
DEPLOY := tests/deploy
DEPLOY_PYTHON = env BUILD=$(BUILD) $(CACHE)/venv/bin/python -B

test-deploy: all ## the chart: lint, unit tests, many values against schemas, generated files
	$(Q)$(DEPLOY)/tools.sh yaml helm kubeconform unittest schemas
	$(Q)timeout 300 $(DEPLOY_PYTHON) $(DEPLOY)/chart.py
	$(Q)timeout 60 $(DEPLOY_PYTHON) $(DEPLOY)/network.py
	$(Q)timeout 60 $(DEPLOY_PYTHON) $(DEPLOY)/docs.py

test-apiserver: ## injection of many kinds of pods by a real kube-apiserver, Pod Security included
	$(Q)$(DEPLOY)/tools.sh yaml helm
	$(Q)timeout 300 $(DEPLOY_PYTHON) $(DEPLOY)/injection.py map
	$(Q)timeout 120 $(DEPLOY_PYTHON) $(DEPLOY)/admission.py

test-kyverno: ## the same by Kyverno's MutatingPolicy and ClusterPolicy
	$(Q)$(DEPLOY)/tools.sh yaml helm kyverno
	$(Q)timeout 900 $(DEPLOY_PYTHON) $(DEPLOY)/injection.py mutatingpolicy clusterpolicy
	$(Q)timeout 300 $(DEPLOY_PYTHON) $(DEPLOY)/golden.py

chart: ## the chart as an archive, for `helm push` into an OCI registry: build/charts
	$(Q)$(DEPLOY)/tools.sh helm
	$(Q)$(CACHE)/go-bin/helm package deploy/helm/vcuda --destination $(BUILD)/charts

policies: all ## deploy/kyverno/, the chart's README and its list of libraries, from the chart
	$(Q)$(DEPLOY)/tools.sh yaml helm
	$(Q)$(DEPLOY_PYTHON) $(DEPLOY)/chart.py --write

golden: ## deploy/kyverno/tests/, from the policies and tests/deploy/pods
	$(Q)$(DEPLOY)/tools.sh yaml helm kyverno
	$(Q)timeout 300 $(DEPLOY_PYTHON) $(DEPLOY)/golden.py --write
