# tests/packaging: what `make deb` makes. Not part of `make test`: lintian and the boot want packages that nothing
# else wants (lintian man-db zsh systemd mmdebstrap systemd-container), and the boot wants root.
.PHONY: test-packaging
test-packaging: run-packaging_packages run-packaging_boot ## the Debian packages: lintian, units, pages, completion; a fresh Debian 12 that boots with them
$(call add_test,packaging_packages,tests/packaging/packages.sh,deb,tests/packaging/packages.sh $(BUILD))
$(call add_test,packaging_boot,tests/packaging/boot.sh,deb,tests/packaging/boot.sh $(BUILD) $(CACHE))

# Its build takes minutes the first time: a target of its own.
.PHONY: test-wheel
test-wheel: run-packaging_wheel ## the Python wheel in a fresh virtual environment, as an ordinary user
$(call add_test,packaging_wheel,tests/packaging/wheel.sh,wheel,tests/packaging/wheel.sh $(BUILD) $(CACHE))
