# The fuzz target of cuDNN's half in the worker.  `make test` replays the corpus with a plain driver;
# `make fuzz-cudnn` runs libFuzzer for FUZZ_SECONDS.

CUDNN_FUZZ_SRCS := tests/fuzz/cudnn.c tests/fuzz/no_beside.c $(wildcard gpu-agent/worker/libraries/cudnn/*.c) gpu-agent/worker/handle.c gpu-agent/worker/limits/quotas.c gpu-agent/probe/library_search.c \
	$(wildcard gpu-agent/worker/libraries/common/*.c) \
	gpu-agent/generated/cudnn_serve.c common/log.c common/error.c

$(BUILD)/tests/fuzz/cudnn-replay: $(call objects,$(CUDNN_FUZZ_SRCS) tests/fuzz/agent_replay.c)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) -lcrypto

$(BUILD)/tests/fuzz/cudnn-libfuzzer: $(CUDNN_FUZZ_SRCS)
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -std=gnu17 -O1 -g $(CPPFLAGS) -fsanitize=fuzzer,address,undefined \
		-fno-sanitize=function,vptr -fno-sanitize-recover=undefined -o $@ $^ -lcrypto

all-tests: run-replay_cudnn
$(call add_test,replay_cudnn,tests/fuzz/cudnn.c,$(BUILD)/tests/fuzz/cudnn-replay, \
	timeout 180 $$< tests/fuzz/corpus/cudnn)

$(call add_fuzz,cudnn,$(BUILD)/tests/fuzz/cudnn-libfuzzer,tests/fuzz/corpus/cudnn,-max_len=8192 -timeout=10)
