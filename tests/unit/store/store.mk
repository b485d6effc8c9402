# tests/unit/store_*.c: the store with memory that the test makes.
UNIT_PREFIXES += store
UNIT_OBJS_store = $(call objects,gpu-agent/store/tensor_table.c gpu-agent/store/calls.c \
	gpu-agent/store/calls_take.c gpu-agent/store/handle.c \
	gpu-agent/store/pieces.c)

# The front's half of their questions.
UNIT_PREFIXES += tensors
UNIT_OBJS_tensors = $(call objects,gpu-agent/front/tensor/tensors.c gpu-agent/front/tensor/tensor_outbound.c gpu-agent/front/tensor/sealing.c gpu-agent/front/events.c)
