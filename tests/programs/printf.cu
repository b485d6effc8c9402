// SPDX-License-Identifier: Apache-2.0
/* printf in a kernel reaches this process's standard output: every line whole, by the time that
 * the device has been waited for. */
#include "check.h"

#include <fcntl.h>
#include <set>
#include <string>

__global__ void speak(double factor)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	printf("thread %3d of block %u: %.2f %s\n", i, blockIdx.x, i * factor, i % 2 ? "odd" : "even");
}

__global__ void formats()
{
	printf("%d %u %x %o %c %%\n", -5, 4000000000u, 0xabcd, 8, 'z');
	printf("%lld %llu %016llx %5.1f %e %g\n", -5000000000ll, 1ull << 63, 0x123456789abcll, 2.25,
		12345.678, 0.0001);
	printf("[%8s] [%-8s] [%08d] [%+d]\n", "right", "left", 42, 42);
	printf("no arguments\n");
}

/* What FUNCTION prints on standard output. */
template <typename F> static std::string captured(F function)
{
	char name[] = "/tmp/vcuda-test-printf-XXXXXX", buffer[65536];
	int file = mkstemp(name), saved = dup(1);

	CHECK(file >= 0 && saved >= 0);
	fflush(stdout);
	dup2(file, 1);
	function();
	CUDA(cudaDeviceSynchronize());
	fflush(stdout);
	dup2(saved, 1);
	ssize_t n = pread(file, buffer, sizeof(buffer), 0);
	CHECK(n >= 0);
	close(file);
	close(saved);
	unlink(name);
	return std::string(buffer, (size_t)n);
}

int main()
{
	char line[200];
	std::string text = captured([] { speak<<<3, 40>>>(0.25); });
	std::multiset<std::string> lines, want;

	for (size_t at = 0, end; at < text.size(); at = end + 1) {
		end = text.find('\n', at);
		CHECK(end != std::string::npos);
		lines.insert(text.substr(at, end - at));
	}
	for (int i = 0; i < 120; i++) {
		snprintf(line, sizeof(line), "thread %3d of block %u: %.2f %s", i, i / 40, i * 0.25,
			i % 2 ? "odd" : "even");
		want.insert(line);
	}
	if (lines != want)
		FAIL("120 lines became %zu lines:\n%s", lines.size(), text.c_str());

	text = captured([] { formats<<<1, 1>>>(); });
	const char *wanted = "-5 4000000000 abcd 10 z %\n"
			     "-5000000000 9223372036854775808 0000123456789abc   2.2 1.234568e+04 "
			     "0.0001\n"
			     "[   right] [left    ] [00000042] [+42]\n"
			     "no arguments\n";
	if (text != wanted)
		FAIL("printed:\n%snot:\n%s", text.c_str(), wanted);
	printf("kernels print\n");
	return 0;
}
