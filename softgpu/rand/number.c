/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of a distribution out of uniform ones.
 */
#include <math.h>
#include <stdlib.h>

#include "softgpu/rand/rand.h"

static double polynomial(const double *c, unsigned n, double x)
{
	double sum = c[0];

	for (unsigned i = 1; i < n; i++)
		sum = sum * x + c[i];
	return sum;
}

/* Acklam's approximation, made exact to rounding by two steps of Newton's. */
double rand_icdf(double u)
{
	static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,
		-2.759285104469687e+02, 1.383577518672690e+02, -3.066479806614716e+01,
		2.506628277459239e+00};
	static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,
		-1.556989798598866e+02, 6.680131188771972e+01, -1.328068155288572e+01, 1};
	static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01,
		-2.400758277161838e+00, -2.549732539343734e+00, 4.374664141464968e+00,
		2.938163982698783e+00};
	static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01,
		2.445134137142996e+00, 3.754408661907416e+00, 1};
	double tail = u < 0.5 ? u : 1 - u, x, r;

	if (tail < 0.02425) {
		r = sqrt(-2 * log(tail));
		x = polynomial(c, 6, r) / polynomial(d, 5, r);
	} else {
		r = (tail - 0.5) * (tail - 0.5);
		x = (tail - 0.5) * polynomial(a, 6, r) / polynomial(b, 6, r);
	}
	for (int i = 0; i < 2; i++)
		x -= (erfc(-x / M_SQRT2) / 2 - tail) * sqrt(2 * M_PI) * exp(x * x / 2);
	return u < 0.5 ? x : -x;
}

void rand_put(const struct rand_order *order, void *to, size_t at, double value)
{
	switch (order->what) {
	case RAND_UNIFORM: ((float *)to)[at] = (float)value; break;
	case RAND_UNIFORM_DOUBLE: ((double *)to)[at] = value; break;
	case RAND_NORMAL:
		((float *)to)[at] = (float)(order->mean + order->deviation * value);
		break;
	case RAND_NORMAL_DOUBLE:
		((double *)to)[at] = order->mean + order->deviation * value;
		break;
	case RAND_LOG_NORMAL:
		((float *)to)[at] = (float)exp(order->mean + order->deviation * value);
		break;
	case RAND_LOG_NORMAL_DOUBLE:
		((double *)to)[at] = exp(order->mean + order->deviation * value);
		break;
	default: ((uint32_t *)to)[at] = rand_pick(order->discrete, value); break;
	}
}

uint32_t rand_pick(const struct rand_discrete *d, double u)
{
	double normal;
	uint32_t j;

	if (!d->length) {
		normal = d->mean + d->deviation * rand_icdf(u) + 0.5;
		return normal < 0 ? 0 : (uint32_t)normal;
	}
	j = (uint32_t)(u * d->length);
	if (j >= d->length)
		j = d->length - 1;
	return d->shift + (u < d->v[j] ? j : d->k[j]);
}

/* Each place j is filled up to 1 by one that has too much. */
static void discrete_fill(struct rand_discrete *d, double *p)
{
	uint32_t small = 0, large = 0;
	double n = d->length;

	for (uint32_t j = 0; j < d->length; j++) {
		d->v[j] = (j + 1.) / n;
		d->k[j] = j;
	}
	for (uint32_t done = 0; done < d->length; done++) {
		while (small < d->length && !(p[small] >= 0 && p[small] < 1))
			small++;
		while (large < d->length && p[large] < 1)
			large++;
		if (small == d->length || large == d->length)
			break;
		d->v[small] = (small + p[small]) / n;
		d->k[small] = large;
		p[large] -= 1 - p[small];
		p[small] = -1; /* it is full */
		if (p[large] < 1 && large < small)
			small = large;
	}
}

bool rand_discrete_make(struct rand_discrete *d, double lambda)
{
	double reach = 10 * sqrt(lambda) + 20, *p;

	*d = (struct rand_discrete){.mean = lambda, .deviation = sqrt(lambda)};
	if (lambda > RAND_GAUSS_FROM)
		return true;
	d->shift = lambda > reach ? (uint32_t)(lambda - reach) : 0;
	d->length = (uint32_t)(lambda + reach) - d->shift;
	d->v = calloc(d->length, sizeof(*d->v));
	d->k = calloc(d->length, sizeof(*d->k));
	p = calloc(d->length, sizeof(*p));
	if (d->v && d->k && p) {
		for (uint32_t j = 0; j < d->length; j++)
			p[j] = d->length * exp((d->shift + j) * log(lambda) - lambda -
						   lgamma(d->shift + j + 1.));
		discrete_fill(d, p);
		free(p);
		return true;
	}
	free(p);
	rand_discrete_free(d);
	return false;
}

void rand_discrete_free(struct rand_discrete *d)
{
	free(d->v);
	free(d->k);
	d->v = NULL;
	d->k = NULL;
}
