# tests/peer: hand-made peers in Python against build/bin/vcuda-client, one lie a test.
.PHONY: test-peer
test: test-peer
test-peer: $(BIN)/vcuda-client ## the sidecar against peers that lie, and its own life
	$(call say,TEST,peer)
	$(Q)for t in app_lies agent_lies lives; do \
		BUILD=$(BUILD) timeout 180 $(PYTHON) -W ignore tests/peer/$$t.py || exit 1; done
