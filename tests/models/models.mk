# tests/models: protocols searched in every order by Spin.
.PHONY: test-models
long-tests: test-models
MODELS := $(patsubst tests/models/%.pml,%,$(wildcard tests/models/*.pml))
test-models: $(addprefix run-model_,$(MODELS)) ## models of the ring, of resumption and of adoption, and their mutants
$(foreach m,$(MODELS),$(call add_test,model_$(m),tests/models/$(m).pml,, \
	timeout 900 tests/models/run.py $(m)))
