/* SPDX-License-Identifier: Apache-2.0
 *
 * What a module of Cython's does that wraps a statically linked runtime (cuda.bindings): it
 * offers each function as a capsule, under the function's name in a dict. Python's functions
 * are declared here, so that its headers are not needed; MODULE is what Python would load it
 * as.
 */
#include <cuda_runtime_api.h>
#include <stddef.h>

typedef struct _object PyObject;

PyObject *PyDict_New(void);
int PyDict_SetItem(PyObject *dict, PyObject *key, PyObject *value);
int PyDict_SetItemString(PyObject *dict, const char *key, PyObject *value);
PyObject *PyUnicode_FromString(const char *text);
PyObject *PyCapsule_New(void *pointer, const char *name, void (*destructor)(PyObject *));
PyObject *MODULE(void);
PyObject *offers(void);

static cudaError_t device_count(int *count)
{
	return cudaGetDeviceCount(count);
}

static cudaError_t allocate(void **memory, size_t bytes)
{
	return cudaMalloc(memory, bytes);
}

static cudaError_t copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	return cudaMemcpy(to, from, bytes, kind);
}

/* Not the runtime's. */
static int seven(void)
{
	return 7;
}

static PyObject *capsule(void *function)
{
	return PyCapsule_New(function, "function", NULL);
}

/* Both ways of putting something into a dict; what is no capsule and what is no text. */
PyObject *offers(void)
{
	PyObject *dict = PyDict_New(), *seventh = capsule((void *)seven);

	PyDict_SetItemString(dict, "_cudaGetDeviceCount", capsule((void *)device_count));
	PyDict_SetItemString(dict, "_cudaMemcpy", capsule((void *)copy));
	PyDict_SetItem(dict, PyUnicode_FromString("_cudaMalloc"), capsule((void *)allocate));
	PyDict_SetItem(dict, PyUnicode_FromString("_cudaSeven"), seventh);
	PyDict_SetItem(dict, seventh, seventh);
	PyDict_SetItemString(dict, "_cudaFree", PyUnicode_FromString("text"));
	return dict;
}

PyObject *MODULE(void)
{
	return NULL;
}
