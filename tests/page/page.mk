# tests/page: the agent's status page in Chromium.  Without one it is skipped; CI installs none.
.PHONY: test-page
all-tests: test-page
test-page: run-page ## the agent's status page in Chromium (skipped where there is none), screenshots in build/page
$(call add_test,page,tests/page/page.py,all $(STACK_APP), \
	timeout 300 tests/page/page.py --build $(BUILD) || [ $$$$? = 77 ])
