# tests/cluster: a real Kubernetes node, the real images, the real chart.  Root, Go, and some minutes
# the first time; not part of `make test`.
.PHONY: test-cluster
test-cluster: images $(STACK_APP) $(STACK_DIRECT) ## the real node: install, exec, limits, drain, upgrade, uninstall (root; builds Kubernetes once)
	$(Q)tests/cluster/build.sh
	$(Q)tests/deploy/tools.sh yaml helm
	$(Q)BUILD=$(BUILD) timeout 2400 $(PYTHON) -B tests/cluster/run.py

TEST_LIST += $(patsubst %,cluster-*=%,$(wildcard tests/cluster/test_*.py))
run-cluster-%: images $(STACK_APP) $(STACK_DIRECT)
	$(Q)tests/cluster/build.sh
	$(Q)tests/deploy/tools.sh yaml helm
	$(Q)BUILD=$(BUILD) timeout 600 $(PYTHON) -B tests/cluster/run.py --exact $*
