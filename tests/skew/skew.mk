# tests/skew: two releases together. What travels is compared with the release before in `make test`; its build, from the
# repository's history, takes minutes: `make test-skew`.
# Those that the release before has, too.
SKEW_PROGRAMS := $(addprefix $(BUILD)/programs/13/,async-memory copies events graph-explicit matmul memset module \
	pinned-memory reduction streams symbols threads) \
	$(addprefix $(BUILD)/cufft/13/,forms transforms)

all-tests: run-skew_layouts
$(call add_test,skew_layouts,tests/skew/layouts.py,,tests/skew/layouts.py --self && tests/skew/layouts.py)

.PHONY: test-skew
test-skew: run-skew_layouts run-skew_releases ## the release before this one with it, client and agent both ways; builds it once
$(call add_test,skew_releases,tests/skew/skew.sh,all $(SKEW_PROGRAMS), \
	tests/skew/skew.sh $(BUILD) $(CACHE) $(SKEW_PROGRAMS))
