# tests/command: what `vcuda doctor` finds, each thing made wrong once.
.PHONY: test-command
all-tests: test-command
test-command: all ## vcuda doctor and status
	$(call say,TEST,command)
	$(Q)BUILD=$(BUILD) timeout 300 $(PYTHON) -W ignore tests/command/doctor.py

TEST_LIST += command-*=tests/command/doctor.py
run-command-doctor.%: all
	$(Q)BUILD=$(BUILD) timeout 300 $(PYTHON) -W ignore tests/command/doctor.py $*

# The version's sources are the Makefile's, so it is a test of the build too.
test-command: run-command_version
$(call add_test,command_version,tests/command/version.sh,all,tests/command/version.sh $(BUILD))
