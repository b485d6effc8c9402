// SPDX-License-Identifier: Apache-2.0
/* Matrix products with nvcuda::wmma: halves into floats and into halves, small integers; loads by
 * rows and by columns, strides, arithmetic on the elements of a fragment; a fragment that is
 * loaded and not looked at, from an address that is none. */
#include "check.h"

#include <cuda_fp16.h>
#include <mma.h>

#include <vector>

using namespace nvcuda;

/* 32 x 32 by four warps, of 16 x 16 each; A by rows, B by columns; twice the product, and 1. */
__global__ void halves(const half *a, const half *b, float *c)
{
	const int row = threadIdx.x / 32 / 2 * 16, column = threadIdx.x / 32 % 2 * 16;
	wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;

	wmma::fill_fragment(fc, 0.5f);
	for (int k = 0; k < 32; k += 16) {
		wmma::load_matrix_sync(fa, a + row * 32 + k, 32);
		wmma::load_matrix_sync(fb, b + column * 32 + k, 32);
		wmma::mma_sync(fc, fa, fb, fc);
	}
	for (int i = 0; i < fc.num_elements; i++)
		fc.x[i] *= 2;
	wmma::store_matrix_sync(c + row * 32 + column, fc, 32, wmma::mem_row_major);
}

/* The same numbers as halves, one tile of 8 x 32, stored by columns. */
__global__ void narrow(const half *a, const half *b, half *c)
{
	wmma::fragment<wmma::matrix_a, 8, 32, 16, half, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 8, 32, 16, half, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 8, 32, 16, half> fc;

	wmma::fill_fragment(fc, __float2half(0.0f));
	wmma::load_matrix_sync(fa, a, 32);
	wmma::load_matrix_sync(fb, b, 32);
	wmma::mma_sync(fc, fa, fb, fc);
	wmma::store_matrix_sync(c, fc, 8, wmma::mem_col_major);
}

__global__ void bytes(const signed char *a, const signed char *b, int *c)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;

	wmma::load_matrix_sync(fa, a, 16);
	wmma::load_matrix_sync(fb, b, 16);
	wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
	wmma::mma_sync(fc, fa, fb, fc);
	wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

/* The compiler leaves the load in the PTX, ptxas drops it. */
__global__ void unread(const half *none, int *c)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;

	wmma::load_matrix_sync(fa, none, 16);
	c[threadIdx.x] += 1;
}

static int a_at(int row, int k) { return (3 * row + k) % 7 - 3; }
static int b_at(int k, int column) { return (k + 2 * column) % 5 - 2; }

template <typename T> static T *upload(const std::vector<T> &host)
{
	T *at;

	CUDA(cudaMalloc(&at, host.size() * sizeof(T)));
	CUDA(cudaMemcpy(at, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
	return at;
}

template <typename T> static std::vector<T> download(T *at, size_t n)
{
	std::vector<T> host(n);

	CUDA(cudaMemcpy(host.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost));
	CUDA(cudaFree(at));
	return host;
}

int main()
{
	std::vector<half> a(32 * 32), b(32 * 32);
	std::vector<signed char> sa(256), sb(256);
	std::vector<int> sc(256, 100);

	for (int r = 0; r < 32; r++)
		for (int k = 0; k < 32; k++) {
			a[r * 32 + k] = __float2half((float)a_at(r, k));
			b[r * 32 + k] = __float2half((float)b_at(k, r));
		}
	for (int r = 0; r < 16; r++)
		for (int k = 0; k < 16; k++) {
			sa[r * 16 + k] = (signed char)(20 * a_at(r, k));
			sb[r * 16 + k] = (signed char)(40 * b_at(r, k));
		}
	half *da = upload(a), *db = upload(b), *dh = upload(std::vector<half>(256));
	float *dc = upload(std::vector<float>(32 * 32));
	signed char *dsa = upload(sa), *dsb = upload(sb);
	int *dsc = upload(sc);

	halves<<<1, 128>>>(da, db, dc);
	narrow<<<1, 32>>>(da, db, dh);
	bytes<<<1, 32>>>(dsa, dsb, dsc);
	unread<<<1, 256>>>(nullptr, dsc);
	CUDA(cudaDeviceSynchronize());
	std::vector<float> c = download(dc, 32 * 32);
	std::vector<half> h = download(dh, 256);
	sc = download(dsc, 256);
	for (int r = 0; r < 32; r++)
		for (int column = 0; column < 32; column++) {
			int sum = 0;

			for (int k = 0; k < 32; k++)
				sum += a_at(r, k) * b_at(k, column);
			CHECK_EQ(c[r * 32 + column], 2.0f * (float)sum + 1.0f);
		}
	for (int r = 0; r < 8; r++)
		for (int column = 0; column < 32; column++) {
			int sum = 0;

			for (int k = 0; k < 16; k++)
				sum += a_at(r, k) * b_at(k, column);
			CHECK_EQ(__half2float(h[column * 8 + r]), (float)sum);
		}
	for (int r = 0; r < 16; r++)
		for (int column = 0; column < 16; column++) {
			int sum = 101;

			for (int k = 0; k < 16; k++)
				sum += 800 * a_at(r, k) * b_at(k, column);
			CHECK_EQ(sc[r * 16 + column], sum);
		}
	CUDA(cudaFree(da));
	CUDA(cudaFree(db));
	CUDA(cudaFree(dsa));
	CUDA(cudaFree(dsb));
	return 0;
}
