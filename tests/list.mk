# The list of tests: `make list-tests` prints it, `make run-NAME` runs one of it alone.
#
# Read before the modules, which add their tests:
#
#     $(call add_test,NAME,FILE,NEEDS,COMMAND)   FILE's first sentence says what the test shows;
#                                                run-NAME builds NEEDS and runs COMMAND
#     TEST_LIST += PREFIX-*=FILE                 every test function of FILE; the .mk has a pattern
#                                                rule run-PREFIX-%
#     TEST_LIST += PREFIX-*=FILE,ARGUMENT…       what `FILE ARGUMENT…` prints, NAME<TAB>WHAT
#
# An argument of add_test has no comma in it; what is to be expanded when the rule runs has $$.
TEST_LIST :=

# unit_files(PATTERN): the files of tests/unit with such a name, whatever room they are in.
unit_files = $(sort $(wildcard tests/unit/*/$(1)))

define test_rule
TEST_LIST += $(1)=$(2)
.PHONY: run-$(1)
build-tests: $(filter-out | dist deb wheel,$(3))
run-$(1): $(3)
	$$(call say,TEST,$(1))
	$$(Q)$(4)
endef
add_test = $(eval $(call test_rule,$(strip $(1)),$(strip $(2)),$(3),$(4)))

.PHONY: list-tests check-tests build-tests
build-tests: ## every test program, and run none of them: what a change of a name must not break
list-tests: ## every test, one line each: its name for `make run-NAME`, and what it shows
	@tests/list.py $(TEST_LIST)

# In `make lint`: no test program is missing from the list, and each name has a rule whose needs
# can be built.
check-tests:
	$(Q)tests/list.py --check $(TEST_LIST)
	$(Q)tests/list.py --names $(TEST_LIST) | sed 's/^/run-/' | \
		xargs $(MAKE) --no-print-directory -n >/dev/null
