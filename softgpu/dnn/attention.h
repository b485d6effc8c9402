/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-head attention: descriptors (attention_descriptor.c), what is computed (attend.c), and
 * the calls (attention.c).
 */
#ifndef VCUDA_SOFTGPU_DNN_ATTENTION_H
#define VCUDA_SOFTGPU_DNN_ATTENTION_H

#include "softgpu/dnn/dnn.h"

enum { SEQ_TIME, SEQ_BATCH, SEQ_BEAM, SEQ_VECTOR, SEQ_DIMS }; /* cudnnSeqDataAxis_t */

/* A sequence data descriptor. */
struct dnn_seq {
	int type;
	int dim[SEQ_DIMS], axes[SEQ_DIMS];
	int *lengths; /* one for each sequence; its own */
	int count;
};

enum { Q, K, V, O, PROJECTIONS }; /* cudnnMultiHeadAttnWeightKind_t; biases behind them */

/* An attention descriptor. A projection of size 0 hands its input on. */
struct dnn_attention {
	unsigned mode;
	int heads;
	double scaler;
	int type;
	int size[PROJECTIONS - 1], projected[PROJECTIONS];
	int q_longest, kv_longest, batch, beam;
};

/* A matrix and a bias for each head: [heads][out][in], [heads][out]. */
struct dnn_projection {
	int64_t in, out;
	int64_t weights, biases; /* where among all weights; biases -1: none */
	bool used;
};

/* What is computed, in doubles: values by batch, beam, step. */
struct dnn_attend {
	const struct dnn_attention *of;
	struct dnn_projection by[PROJECTIONS];
	int64_t rows[PROJECTIONS - 1]; /* vectors of Q, of K and of V */
	int64_t beams, kv_beams, q_steps, kv_steps;
	const double *weights;
	const int *low, *high; /* of each step of Q */
	const int *q_length, *kv_length;
	int current;			    /* the step that is computed; below 0: all */
	double *scores;			    /* after softmax: [rows of Q][heads][kv_steps] */
	double *projected[PROJECTIONS - 1]; /* [rows][heads][out] */
	double *d_projected[PROJECTIONS - 1];
	double *mixed; /* values mixed by the scores: [rows of Q][heads][out of V] */
};

/* Of all projections, where they lie; elements that all weights have. */
int64_t dnn_projections(const struct dnn_attention *of, struct dnn_projection *by);
/* Elements of a result's vector. */
int64_t dnn_attention_out(const struct dnn_attention *of);
/* Doubles of the reserve space. */
int64_t dnn_attention_scores(const struct dnn_attention *of);

/* How many elements, and where one is. */
int64_t dnn_seq_elements(const struct dnn_seq *seq);
/* Its values by batch, beam, step and element; NULL: the handle failed. */
double *dnn_seq_load(struct dnn_job *job, const struct dnn_seq *seq, const void *at);
void dnn_seq_store(
	struct dnn_job *job, const struct dnn_seq *seq, void *at, const double *values);
/* Which of the lengths is that of a sequence. */
int dnn_seq_number(const struct dnn_seq *seq, int batch, int beam);

/* Projects X, `rows` vectors of Q, K or V. */
void dnn_attend_project(struct dnn_attend *a, int which, const double *x);
/* scores, mixed and `out` from what is projected. */
void dnn_attend(struct dnn_attend *a, double *out);
/* d_projected and mixed from the scores and what the result's gradient is. */
void dnn_attend_back(struct dnn_attend *a, const double *dout);
/* The gradient of one input. */
void dnn_attend_input(const struct dnn_attend *a, int which, double *dx);
/* Adds up the gradients of all weights. */
void dnn_attend_weights(
	const struct dnn_attend *a, const double *const *x, const double *dout, double *dw);

#endif
