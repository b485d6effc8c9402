# tests/peers: python/vcuda-peers over a real Redis. Not part of `make test`: it fetches PyTorch once
# (tests/torch).
PEERS_PYTHON := $(CACHE)/torch-2.11.0/bin/python

.PHONY: test-peers
test-peers: run-peers run-peers_joins run-peers_validator run-peers_fresh ## a model over several people's GPUs (fetches 1 GB once)
$(call add_test,peers,tests/peers/peers.py,all, \
	tests/torch/install.sh $(CACHE) --peers 2.11.0 && BUILD=$(BUILD) timeout 1200 \
	$(PEERS_PYTHON) tests/peers/peers.py)
$(call add_test,peers_joins,tests/stack/test_peer.py,all stack-programs,VCUDA_TEST_JOINS=1000 TEST_LIMIT=500 BUILD=$(BUILD) \
	timeout 600 tests/stack/run.py --exact peer.joins_and_leaves_leave_nothing)
$(call add_test,peers_validator,tests/peers/validator.py,all, \
	tests/torch/install.sh $(CACHE) --peers 2.11.0 && BUILD=$(BUILD) timeout 900 \
	$(PEERS_PYTHON) tests/peers/validator.py)
$(call add_test,peers_fresh,tests/peers/fresh.py,all, \
	tests/torch/install.sh $(CACHE) --peers 2.11.0 && BUILD=$(BUILD) timeout 600 \
	$(PEERS_PYTHON) tests/peers/fresh.py)
