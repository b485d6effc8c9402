/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans on two GPUs (cufftXtSetGPUs): transforms of each type, of one batch in one, two and
 * three dimensions and of many batches, against sums of the definition; where each GPU's part
 * lies before and behind; and the way back.
 */
#include "tests/cufft/several.h"

/* Plan, descriptor, and what went in. */
struct run {
	struct shape s;
	cufftHandle plan;
	cudaLibXtDesc *data;
	double complex *in; /* of all batches */
	void *host;
};

static void run_begin(struct run *r, struct shape s)
{
	*r = (struct run){.s = s, .plan = plan_of(&s)};
	r->host = calloc(1, host_bytes(&s));
	r->in = calloc(numbers(&s), sizeof(*r->in));
	for (size_t i = 0; i < numbers(&s); i++) {
		r->in[i] = some_value(i) + (s.real ? 0 : I * some_value(i + 7777));
		host_put(&s, r->host, i, r->in[i]);
	}
	FFT(cufftXtMalloc(r->plan, &r->data, CUFFT_XT_FORMAT_INPLACE));
	on_both(r->data);
	FFT(cufftXtMemcpy(r->plan, r->data, r->host, CUFFT_COPY_HOST_TO_DEVICE));
	memset(r->host, 0xff, host_bytes(&s));
}

static void run_end(struct run *r)
{
	FFT(cufftXtFree(r->data));
	FFT(cufftDestroy(r->plan));
	free(r->host);
	free(r->in);
}

/* Some elements of each batch of the spectrum in natural order. */
static void spectrum_is_right(const struct run *r, int direction)
{
	const struct shape *s = &r->s;
	size_t all = numbers(s) / (size_t)s->batch, out = spectrum(s) / (size_t)s->batch;
	int last = s->real ? s->n[2] / 2 + 1 : s->n[2];

	for (size_t b = 0; b < (size_t)s->batch; b++)
		for (size_t i = 0; i < out; i += 1 + out / 40) {
			int at[3] = {(int)i / last / s->n[1], (int)i / last % s->n[1],
				(int)i % last};

			near("spectrum", b * out + i, complex_of(s, r->host, b * out + i),
				transform_at(r->in + b * all, s->n, at, direction), all,
				s->wide);
		}
}

/* Each GPU has its y of each x; of an array of one dimension its strings. */
static void parts_are_shuffled(const struct run *r)
{
	const struct shape *s = &r->s;
	int last = s->real ? s->n[2] / 2 + 1 : s->n[2];
	size_t x = (size_t)(s->n[0] > 1 ? s->n[0] : s->n[1]);
	size_t y = (size_t)(s->n[0] > 1 ? s->n[1] : last), z = s->n[0] > 1 ? (size_t)last : 1;
	size_t first = (y + 1) / 2, count = x * (y - first) * z, bytes = s->wide ? 16 : 8;
	char *part = malloc(count * bytes);

	if (r->data->descriptor->size[1] < count * bytes)
		DIE("the second part has %zu bytes", r->data->descriptor->size[1]);
	CUDA(cudaMemcpy(part, r->data->descriptor->data[1], count * bytes, cudaMemcpyDefault));
	for (size_t i = 0; i < count; i++) {
		size_t at = (i / z / (y - first) * y + first + i / z % (y - first)) * z + i % z;

		if (complex_of(s, part, i) != complex_of(s, r->host, at))
			DIE("element %zu of the second part is not element %zu", i, at);
	}
	free(part);
}

static void strings_are_told(const struct run *r)
{
	const struct shape *s = &r->s;
	size_t half = (size_t)s->n[2] / 2, bytes = s->wide ? 16 : 8;
	char *part = malloc(half * bytes);
	cufftXt1dFactors f;

	FFT(cufftXtQueryPlan(r->plan, &f, CUFFT_QUERY_1D_FACTORS));
	if (f.size != s->n[2] || f.factor1 * f.factor2 != f.size)
		DIE("%lld is not %lld times %lld", f.size, f.factor1, f.factor2);
	for (size_t g = 0; g < 2; g++) {
		CUDA(cudaMemcpy(
			part, r->data->descriptor->data[g], half * bytes, cudaMemcpyDefault));
		for (size_t i = 0; i < half; i++) {
			/* As NVIDIA's documentation has it. */
			size_t string = (i >> f.stringShift & (size_t)f.stringMask) +
					g * (size_t)f.stringCount / 2;
			size_t at = (i & (size_t)f.substringMask) +
				    (string << f.substringShift) +
				    ((i >> f.substringShift & (size_t)f.factor2Mask)
					    << f.factor1Shift);

			if (complex_of(s, part, i) != complex_of(s, r->host, at))
				DIE("element %zu of part %zu is not element %zu", i, g, at);
		}
	}
	free(part);
}

/* What came back is what was there, times how many there are. */
static void is_as_before(const struct run *r)
{
	double all = (double)numbers(&r->s) / r->s.batch;

	for (size_t i = 0; i < numbers(&r->s); i++)
		near("there and back", i, host_at(&r->s, r->host, i) / all, r->in[i], 1,
			r->s.wide);
}

static void format_is(const cudaLibXtDesc *d, cufftXtSubFormat want)
{
	if (d->subFormat != (int)want)
		DIE("the format is %d, not %d", d->subFormat, want);
}

static void complex_case(int nx, int ny, int nz, int batch, bool wide)
{
	bool line = nx == 1 && ny == 1 && batch == 1;
	cudaLibXtDesc *other;
	struct run r;

	run_begin(&r, (struct shape){{nx, ny, nz}, batch, wide, false, false});
	exec_complex(&r.s, r.plan, r.data, CUFFT_FORWARD);
	format_is(
		r.data, batch > 1 ? CUFFT_XT_FORMAT_INPLACE : CUFFT_XT_FORMAT_INPLACE_SHUFFLED);
	FFT(cufftXtMemcpy(r.plan, r.host, r.data, CUFFT_COPY_DEVICE_TO_HOST));
	spectrum_is_right(&r, CUFFT_FORWARD);
	if (line)
		strings_are_told(&r);
	else if (batch == 1)
		parts_are_shuffled(&r);
	if (batch == 1) { /* the devices put it into natural order */
		FFT(cufftXtMalloc(r.plan, &other, CUFFT_XT_FORMAT_INPLACE));
		FFT(cufftXtMemcpy(r.plan, other, r.data, CUFFT_COPY_DEVICE_TO_DEVICE));
		memset(r.host, 0xff, host_bytes(&r.s));
		FFT(cufftXtMemcpy(r.plan, r.host, other, CUFFT_COPY_DEVICE_TO_HOST));
		spectrum_is_right(&r, CUFFT_FORWARD);
		exec_complex(&r.s, r.plan, other, CUFFT_INVERSE);
		FFT(cufftXtMemcpy(r.plan, r.host, other, CUFFT_COPY_DEVICE_TO_HOST));
		is_as_before(&r);
		FFT(cufftXtFree(other));
	}
	if (!line) {
		exec_complex(&r.s, r.plan, r.data, CUFFT_INVERSE);
		format_is(r.data, CUFFT_XT_FORMAT_INPLACE);
		FFT(cufftXtMemcpy(r.plan, r.host, r.data, CUFFT_COPY_DEVICE_TO_HOST));
		is_as_before(&r);
	}
	run_end(&r);
}

static void real_case(int nx, int ny, int nz, int batch, bool wide)
{
	struct shape back = {{nx, ny, nz}, batch, wide, true, true};
	cufftHandle inverse = plan_of(&back);
	struct run r;

	run_begin(&r, (struct shape){{nx, ny, nz}, batch, wide, true, false});
	exec_real(&r.s, r.plan, r.data);
	FFT(cufftXtMemcpy(r.plan, r.host, r.data, CUFFT_COPY_DEVICE_TO_HOST));
	spectrum_is_right(&r, CUFFT_FORWARD);
	if (batch == 1)
		parts_are_shuffled(&r);
	exec_real(&back, inverse, r.data);
	format_is(r.data, CUFFT_XT_FORMAT_INPLACE);
	FFT(cufftXtMemcpy(inverse, r.host, r.data, CUFFT_COPY_DEVICE_TO_HOST));
	is_as_before(&r);
	FFT(cufftDestroy(inverse));
	run_end(&r);
}

/* The input of a line as the first pass wants it gives the same strings. */
static void line_redistributed(int n)
{
	size_t bytes = (size_t)n * 8 / 2;
	char *one = malloc(bytes), *two = malloc(bytes);
	cudaLibXtDesc *other;
	struct run r;

	run_begin(&r, (struct shape){{1, 1, n}, 1, false, false, false});
	exec_complex(&r.s, r.plan, r.data, CUFFT_FORWARD);
	for (int i = 0; i < n; i++)
		host_put(&r.s, r.host, (size_t)i, r.in[i]);
	FFT(cufftXtMalloc(r.plan, &other, CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED));
	FFT(cufftXtMemcpy(r.plan, other, r.host, CUFFT_COPY_HOST_TO_DEVICE));
	exec_complex(&r.s, r.plan, other, CUFFT_FORWARD);
	for (int g = 0; g < 2; g++) {
		CUDA(cudaMemcpy(one, r.data->descriptor->data[g], bytes, cudaMemcpyDefault));
		CUDA(cudaMemcpy(two, other->descriptor->data[g], bytes, cudaMemcpyDefault));
		for (int i = 0; i < n / 2; i++)
			near("redistributed", (size_t)i, complex_of(&r.s, two, (size_t)i),
				complex_of(&r.s, one, (size_t)i), (size_t)n, false);
	}
	FFT(cufftXtFree(other));
	run_end(&r);
	free(one);
	free(two);
}

int main(void)
{
	int device;

	if (!two_gpus())
		return 0;
	CUDA(cudaSetDevice(both_gpus[1]));
	for (int wide = 0; wide < 2; wide++) {
		complex_case(1, 1, 64, 1, wide);
		complex_case(1, 1, 1024, 1, wide);
		complex_case(1, 33, 34, 1, wide);
		complex_case(33, 32, 3, 1, wide);
		complex_case(1, 1, 7, 5, wide);
		complex_case(1, 4, 6, 2, wide);
		complex_case(3, 4, 5, 3, wide);
		real_case(1, 33, 34, 1, wide);
		real_case(1, 32, 35, 1, wide);
		real_case(33, 34, 5, 1, wide);
		real_case(1, 1, 9, 3, wide);
		real_case(1, 4, 6, 5, wide);
	}
	line_redistributed(64);
	line_redistributed(512);
	CUDA(cudaGetDevice(&device));
	if (device != both_gpus[1])
		DIE("device %d is current, not %d", device, both_gpus[1]);
	puts("ok");
	return 0;
}
