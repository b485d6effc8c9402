# packaging/: what people install without a build.
.PHONY: deb
deb: all examples ## Debian packages vcuda, vcuda-client, gpu-agent, vcuda-libs: build/deb (wants go-md2man and dpkg-dev)
	$(Q)packaging/deb.sh $(BUILD) $(BUILD)/deb
