# tests/peer: hand-made peers in Python against build/bin/vcuda-client, one protocol violation a test.
.PHONY: test-peer
all-tests: test-peer
PEER_FILES := app_violations agent_violations traffic lives relays
test-peer: $(BIN)/vcuda-client ## the sidecar against peers that violate the protocol, and its own life
	$(call say,TEST,peer)
	$(Q)for t in $(PEER_FILES); do \
		BUILD=$(BUILD) timeout 400 $(PYTHON) -W ignore tests/peer/$$t.py || exit 1; done

# run-peer-FILE.CLASS.TEST
define peer_rule
TEST_LIST += peer-*=tests/peer/$(1).py
run-peer-$(1).%: $$(BIN)/vcuda-client
	$$(Q)BUILD=$$(BUILD) timeout 400 $$(PYTHON) -W ignore tests/peer/$(1).py $$*
endef
$(foreach file,$(PEER_FILES),$(eval $(call peer_rule,$(file))))
