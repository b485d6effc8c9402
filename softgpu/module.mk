include softgpu/ptx.mk
