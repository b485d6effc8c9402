# tests/gpu: on a machine with a GPU, out of .dist (`make dist`); its scripts run there alone too.
define gpu_rule
$(call add_test,gpu_$(1),tests/gpu/$(1).$(2),dist,tests/gpu/$(1).$(2))
endef
$(foreach name,all programs cublas cudnn cufft curand cusolver cusparse cusparselt nccl records torch sandbox tenants rows peers agents store,$(call gpu_rule,$(name),sh))
$(foreach name,kill train_under_cuts blocking operators frameworks peer_models peer_tensors views generate,$(call gpu_rule,$(name),py))
$(call add_test,gpu_cluster,tests/gpu/cluster.sh,,tests/gpu/cluster.sh run)
NUMBA_PACK := $(BUILD)/numba.tar.xz
$(call add_test,gpu_numba,tests/gpu/numba.sh,dist,tests/numba/pack.sh $(CACHE) $(NUMBA_PACK) && \
	tests/gpu/numba.sh --pack $(NUMBA_PACK))
# SUITES is a tar of test suites, and SUITE the path of one in it.
$(call add_test,gpu_suites,tests/gpu/suites.py,dist,tests/gpu/suites.py --sources $(SUITES) $(SUITE))
# COLLECTION is a tar that tests/collection/pack.py made.
$(call add_test,gpu_collection,tests/gpu/collection.py,dist,tests/gpu/collection.py --sources $(COLLECTION))
