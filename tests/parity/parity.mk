# Are the descriptions what NVIDIA's headers and libraries say?  And does the generator refuse
# what is no description?
.PHONY: test-parity
test: test-parity

test-parity: | $(CACHE)/.complete
	$(call say,TEST,parity)
	$(Q)timeout 120 $(PYTHON) tests/parity/parity.py $(CACHE)
	$(Q)timeout 60 $(PYTHON) tests/parity/language.py
