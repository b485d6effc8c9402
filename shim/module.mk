# What a program loads in place of NVIDIA's libraries.
-include shim/runtime/runtime.mk shim/utilities/utilities.mk
